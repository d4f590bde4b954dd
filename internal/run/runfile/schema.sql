-- The tables of a run file. People use the views (views.sql). The tables are for speed and size,
-- and to read back every entry unchanged. Only rows of state and progress are ever changed; the
-- other tables only grow.
--
-- seq is the number of an entry in the journal, from 1, without gaps over all tables that have it.
-- Times (at) are nanoseconds since 1970, durations are nanoseconds, money is billionths of a dollar.
-- sum is a checksum of a row's key and its other columns. A wide table has groups of columns with
-- 32 bits of sum each, so that a query for some columns does not have to read all.

-- One row: the writer's epoch, and totals that every commit updates, so that no reader has to
-- count, and so that a missing row is noticed.
CREATE TABLE state (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sum      INTEGER NOT NULL,
    epoch    INTEGER NOT NULL, -- increases when a process opens the file to write
    seq      INTEGER NOT NULL, -- of the last entry
    calls    INTEGER NOT NULL, -- that were answered or failed: the rows of replies
    spent    INTEGER NOT NULL, -- on these calls
    texts    INTEGER NOT NULL, -- the last text, and then the rows of other tables:
    events   INTEGER NOT NULL,
    stages   INTEGER NOT NULL,
    turns    INTEGER NOT NULL,
    outcomes INTEGER NOT NULL,
    episodes INTEGER NOT NULL, -- of all stages
    begun    INTEGER NOT NULL, -- the rows of progress
    playing  INTEGER NOT NULL, -- episodes that began and did not end
    ended    INTEGER NOT NULL, -- that ended, and did not fail
    failed   INTEGER NOT NULL,
    -- What workers record in the log of a cluster is here up to a message of that log; 0: no log.
    log       INTEGER NOT NULL,
    collected INTEGER NOT NULL
);

-- Texts that occur many times, stored once: of messages (whatever their role), the settings of
-- requests, the params of episodes, lineups and what few episodes have.
CREATE TABLE texts (
    id   INTEGER PRIMARY KEY,
    sum  INTEGER NOT NULL,
    text TEXT NOT NULL,
    rest TEXT -- the rest of a message that is not one text, as JSON
);

-- Rare entries: begun, opened, closed, exposed, batched, steered.
CREATE TABLE events (
    seq  INTEGER PRIMARY KEY,
    sum  INTEGER NOT NULL,
    what TEXT NOT NULL,
    at   INTEGER,
    data TEXT NOT NULL,
    plan TEXT -- of begun
);

CREATE TABLE stages (
    seq   INTEGER PRIMARY KEY,
    sum   INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    first INTEGER NOT NULL, -- its first episode
    count INTEGER NOT NULL
);

-- The episodes of stages, in blocks. A block is a sequence of groups of equal episodes, repeated in
-- rounds: each round has deals that are one higher than in the round before. A row is a group in
-- the first round. A block of one round has one group.
CREATE TABLE specs (
    episode INTEGER PRIMARY KEY, -- the first of the group
    sum     INTEGER NOT NULL,
    size    INTEGER NOT NULL, -- of the group
    block   INTEGER NOT NULL, -- its first episode
    round   INTEGER NOT NULL, -- how many episodes a round of the block has
    rounds  INTEGER NOT NULL, -- how many rounds it has
    kind    TEXT NOT NULL,
    params  INTEGER, -- a text
    lineup  INTEGER, -- a text
    more    INTEGER, -- a text: other system prompts of agents, and a remark of the kind
    deal    INTEGER NOT NULL,
    cell    TEXT
);

-- The progress of each episode up to the last that began. last is the last of its turns and
-- replies. Each of these names the one before it in prev, so they are found without an index,
-- which would slow down every write.
CREATE TABLE progress (
    episode INTEGER PRIMARY KEY,
    sum     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    open    INTEGER NOT NULL, -- calls that are not answered
    entries INTEGER NOT NULL, -- its turns and replies
    ended   INTEGER NOT NULL, -- 1 ended, 2 failed
    first   INTEGER NOT NULL, -- seq of its first turn or reply; 0: none
    last    INTEGER NOT NULL  -- seq of a reply, or minus the seq of a turn
);

CREATE TABLE turns (
    seq     INTEGER PRIMARY KEY,
    sum     INTEGER NOT NULL, -- of the columns up to digest, and of notes
    prev    INTEGER NOT NULL, -- as progress.last
    episode INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    strand  TEXT NOT NULL,
    turn    INTEGER NOT NULL,
    calls   INTEGER NOT NULL,
    digest  BLOB NOT NULL,
    notes   TEXT
);

CREATE TABLE replies (
    seq              INTEGER PRIMARY KEY,
    sum              INTEGER NOT NULL, -- of the columns up to answer, and of json and rest
    sum2             INTEGER NOT NULL, -- of the other two groups
    prev             INTEGER NOT NULL, -- as progress.last
    flags            INTEGER NOT NULL, -- 1 answered, 2 failed, 4 asked a model, 8 copied, 16 cached,
                                       -- 32 coalesced, 64 hedged, 128 final, 256 uncertain, 512 an act,
                                       -- 1024 its cost is estimated
    episode          INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    strand           TEXT NOT NULL,
    turn             INTEGER NOT NULL,
    place            INTEGER NOT NULL, -- the index of the call in its turn
    cost             INTEGER,
    input            INTEGER,
    output           INTEGER,
    finish           TEXT,
    error            TEXT,
    answer           INTEGER, -- a text

    -- The rest of the answer.
    json,                     -- the number 1 if it equals the answer's text
    rest             TEXT,    -- refusal, thoughts, tool calls, token ids, …, as JSON

    -- The seat, the model, and its usage and times.
    seat             TEXT NOT NULL,
    label            TEXT NOT NULL,
    agent            TEXT NOT NULL,
    at               INTEGER,
    settings         INTEGER, -- a text: model, parameters, tools, schema
    model            TEXT,
    provider         TEXT,
    tier             TEXT,
    cached           INTEGER,
    cache_write      INTEGER,
    cache_write_long INTEGER,
    reasoning        INTEGER,
    tries            INTEGER,
    parsed           TEXT,
    first_byte       INTEGER,
    latency          INTEGER,
    waited           INTEGER,
    message          TEXT,
    status           INTEGER,
    code             TEXT,
    retry_after      INTEGER,

    -- The request.
    prompt           TEXT,    -- texts, as a JSON list of their ids
    roles            TEXT,    -- a letter for each: system, user, assistant, tool; x: see the rest of the text
    sample           INTEGER,
    prefix           INTEGER,
    session          TEXT,
    queue            INTEGER,
    act              TEXT,
    body             TEXT,
    id               TEXT,
    request_id       TEXT
);

CREATE TABLE outcomes (
    seq     INTEGER PRIMARY KEY,
    sum     INTEGER NOT NULL, -- of episode and attempt, and of the others
    episode INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER,
    failed  TEXT,
    scores  TEXT,
    data    TEXT,
    stack   TEXT,
    play    TEXT,   -- a digest of what was said and scored, in hexadecimal
    chance  INTEGER -- 1: an equal play may be chance
);
