-- The table of a run file with shards: files beside it that hold turns, replies and their texts. Each
-- shard also has this table, with its own row.
CREATE TABLE shards (
    shard INTEGER PRIMARY KEY, -- from 1
    sum   INTEGER NOT NULL,
    count INTEGER NOT NULL, -- how many shards the run has
    id    INTEGER NOT NULL, -- a random number, the same in both files
    texts INTEGER NOT NULL  -- how many texts of the shard belong to the run: those after them were not committed
);
