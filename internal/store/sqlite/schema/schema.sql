-- The tables of a run file. People look at the views (views.sql); these are for speed, for
-- size, and for reading every entry back as it was written. Nothing is ever changed or
-- deleted but state and progress: the rest is a list that grows.
--
-- seq is an entry's place in the journal, from 1, without gaps over all tables that have it.
-- Times (at) are nanoseconds since 1970, durations nanoseconds, money billionths of a dollar.
-- sum is a checksum of a row's number and its other columns. In a wide table they are in groups,
-- with 32 bits of sum for each, so that a query for some of them need not read all.

-- One row: the writer's epoch, and totals kept with every commit so that nobody has to count,
-- and so that a row that is missing is noticed.
CREATE TABLE state (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    sum      INTEGER NOT NULL,
    epoch    INTEGER NOT NULL, -- goes up whenever somebody opens the file to write
    seq      INTEGER NOT NULL, -- of the last entry
    calls    INTEGER NOT NULL, -- answered or failed: the rows of replies
    spent    INTEGER NOT NULL, -- on them
    texts    INTEGER NOT NULL, -- the last text, and the rows of the other tables:
    events   INTEGER NOT NULL,
    stages   INTEGER NOT NULL,
    turns    INTEGER NOT NULL,
    outcomes INTEGER NOT NULL,
    episodes INTEGER NOT NULL, -- of all stages
    begun    INTEGER NOT NULL, -- the rows of progress
    playing  INTEGER NOT NULL, -- episodes that began and did not end
    ended    INTEGER NOT NULL, -- that ended, and did not fail
    failed   INTEGER NOT NULL
);

-- Everything that is said more than once, once: what messages say (whoever says it), the
-- settings of requests, the params of episodes, lineups.
CREATE TABLE texts (
    id   INTEGER PRIMARY KEY,
    sum  INTEGER NOT NULL,
    text TEXT NOT NULL,
    rest TEXT -- what a message has beside one text, as JSON
);

-- Rare entries: begun, opened, closed, exposed, batched.
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

-- The episodes of stages, in blocks. A block is groups of episodes that are alike, one after the
-- other, repeated in rounds: the deals of each round are one higher than in the round before. A
-- row is a group in the first round. A block of one round has one group.
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
    deal    INTEGER NOT NULL,
    cell    TEXT
);

-- How far each episode has come: one row for each up to the last that began. last is where its turns and replies
-- end: each names the one before it in prev, so they are found without an index, which would
-- cost every write.
CREATE TABLE progress (
    episode INTEGER PRIMARY KEY,
    sum     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    open    INTEGER NOT NULL, -- calls asked for and not answered
    entries INTEGER NOT NULL, -- its turns and replies
    ended   INTEGER NOT NULL, -- 1 ended, 2 failed
    first   INTEGER NOT NULL, -- seq of its first turn or reply; 0: there is none
    last    INTEGER NOT NULL  -- seq of a reply, or minus the seq of a turn
);

CREATE TABLE turns (
    seq     INTEGER PRIMARY KEY,
    sum     INTEGER NOT NULL, -- of what is up to digest, and of notes
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
    sum              INTEGER NOT NULL, -- of what is up to answer, and of json and rest
    sum2             INTEGER NOT NULL, -- of the other two groups
    prev             INTEGER NOT NULL, -- as progress.last
    flags            INTEGER NOT NULL, -- 1 answered, 2 failed, 4 asked a model, 8 copied, 16 cached,
                                       -- 32 coalesced, 64 hedged, 128 final, 256 uncertain, 512 an act,
                                       -- 1024 its cost is estimated
    episode          INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    strand           TEXT NOT NULL,
    turn             INTEGER NOT NULL,
    place            INTEGER NOT NULL, -- of the call in its turn
    cost             INTEGER,
    input            INTEGER,
    output           INTEGER,
    finish           TEXT,
    error            TEXT,
    answer           INTEGER, -- a text

    -- What else the answer is.
    json,                     -- the number 1 where it is the answer's text, to the byte
    rest             TEXT,    -- refusal, thoughts, tool calls, token ids, …, as JSON

    -- Who was asked, who answered, and what it took.
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

    -- What was asked.
    prompt           TEXT,    -- texts, as a JSON list of their ids
    roles            TEXT,    -- whose they are, a letter each: system, user, assistant, tool; x: see its rest
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
    play    TEXT,   -- identifies what was said and scored, in hexadecimal
    chance  INTEGER -- 1: the same play again may be chance
);
