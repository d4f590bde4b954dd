-- The tables of a run file. People look at the views (views.sql); these are for speed, for
-- size, and for reading every entry back as it was written. Nothing is ever changed or
-- deleted but state and progress: the rest is a list that grows.
--
-- seq is an entry's place in the journal, from 1, without gaps over all tables that have it.
-- Times (at) are nanoseconds since 1970, durations nanoseconds, money billionths of a dollar.

-- One row: the writer's epoch, and totals kept with every commit so that nobody has to count.
CREATE TABLE state (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL, -- goes up whenever somebody opens the file to write
    seq   INTEGER NOT NULL, -- of the last entry
    calls INTEGER NOT NULL, -- answered or failed
    spent INTEGER NOT NULL  -- on them
);

-- Everything that is said more than once, once: what messages say (whoever says it), the
-- settings of requests, the params of episodes, lineups.
CREATE TABLE texts (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    rest TEXT -- what a message has beside one text, as JSON
);

-- Rare entries: begun, opened, closed, exposed, batched.
CREATE TABLE events (
    seq  INTEGER PRIMARY KEY,
    what TEXT NOT NULL,
    at   INTEGER,
    data TEXT NOT NULL,
    plan TEXT -- of begun
);

CREATE TABLE stages (
    seq   INTEGER PRIMARY KEY,
    stage INTEGER NOT NULL,
    first INTEGER NOT NULL, -- its first episode
    count INTEGER NOT NULL
);

CREATE TABLE specs (
    episode INTEGER PRIMARY KEY,
    kind    TEXT NOT NULL,
    params  INTEGER, -- a text
    lineup  INTEGER, -- a text
    deal    INTEGER NOT NULL,
    cell    TEXT
);

-- How far each episode has come. last is where its turns and replies end: each names the
-- one before it in prev, so they are found without an index, which would cost every write.
CREATE TABLE progress (
    episode INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL,
    open    INTEGER NOT NULL, -- calls asked for and not answered
    entries INTEGER NOT NULL, -- its turns and replies
    ended   INTEGER NOT NULL,
    first   INTEGER NOT NULL, -- seq of its first turn or reply
    last    INTEGER NOT NULL  -- seq of a reply, or minus the seq of a turn
);

CREATE TABLE turns (
    seq     INTEGER PRIMARY KEY,
    prev    INTEGER NOT NULL, -- as progress.last
    episode INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    strand  TEXT NOT NULL,
    turn    INTEGER NOT NULL,
    digest  BLOB NOT NULL,
    calls   INTEGER NOT NULL,
    notes   TEXT
);

CREATE TABLE replies (
    seq              INTEGER PRIMARY KEY,
    prev             INTEGER NOT NULL, -- as progress.last
    episode          INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    strand           TEXT NOT NULL,
    turn             INTEGER NOT NULL,
    place            INTEGER NOT NULL, -- of the call in its turn
    seat             TEXT NOT NULL,
    label            TEXT NOT NULL,
    agent            TEXT NOT NULL,
    at               INTEGER,
    flags            INTEGER NOT NULL, -- 1 answered, 2 failed, 4 asked a model, 8 copied, 16 cached,
                                       -- 32 coalesced, 64 hedged, 128 final, 256 uncertain, 512 an act
    settings         INTEGER, -- a text: model, parameters, tools, schema
    prompt           TEXT,    -- texts, as a JSON list of their ids
    roles            TEXT,    -- whose they are, a letter each: system, user, assistant, tool; x: see its rest
    sample           INTEGER,
    prefix           INTEGER,
    session          TEXT,
    queue            INTEGER,
    act              TEXT,
    body             TEXT,
    answer           INTEGER, -- a text
    json,                     -- the number 1 where it is the answer's text, to the byte
    rest             TEXT,    -- refusal, thoughts, tool calls, token ids, …, as JSON
    finish           TEXT,
    model            TEXT,
    provider         TEXT,
    id               TEXT,
    request_id       TEXT,
    tier             TEXT,
    input            INTEGER,
    cached           INTEGER,
    cache_write      INTEGER,
    cache_write_long INTEGER,
    output           INTEGER,
    reasoning        INTEGER,
    tries            INTEGER,
    parsed           TEXT,
    cost             INTEGER,
    first_byte       INTEGER,
    latency          INTEGER,
    waited           INTEGER,
    error            TEXT,
    message          TEXT,
    status           INTEGER,
    code             TEXT,
    retry_after      INTEGER
);

CREATE TABLE outcomes (
    seq     INTEGER PRIMARY KEY,
    episode INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER,
    failed  TEXT,
    scores  TEXT,
    data    TEXT,
    stack   TEXT
);
