CREATE TABLE meta (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL,
    run     TEXT NOT NULL,
    entries INTEGER NOT NULL, -- of the run that are in episodes and scores
    texts   INTEGER NOT NULL, -- of the run that are in said
    bytes   INTEGER NOT NULL  -- of the texts in said
);
CREATE TABLE episodes (
    episode INTEGER PRIMARY KEY,
    state   TEXT NOT NULL,
    cell    TEXT NOT NULL,
    lineup  TEXT NOT NULL, -- as seat=agent, separated and enclosed by spaces
    deal    INTEGER NOT NULL,
    failed  TEXT NOT NULL, -- why
    calls   INTEGER NOT NULL,
    errors  INTEGER NOT NULL, -- calls that failed
    tokens  INTEGER NOT NULL,
    cost    INTEGER NOT NULL,
    began   INTEGER NOT NULL, -- the first reply, in nanoseconds since 1970; 0: none
    until   INTEGER NOT NULL, -- the end or the last reply
    strip   TEXT NOT NULL, -- who answered the first calls, a letter each: see Row.Strip
    took    INTEGER NOT NULL GENERATED ALWAYS AS (CASE WHEN began THEN max(0, until - began) ELSE 0 END) STORED
);
CREATE INDEX episodes_of_deal ON episodes (deal, episode);
CREATE INDEX episodes_of_failure ON episodes (failed) WHERE failed <> '';
CREATE TABLE scores (
    name    TEXT NOT NULL,
    seat    TEXT NOT NULL,
    value   REAL NOT NULL,
    episode INTEGER NOT NULL,
    place   INTEGER NOT NULL, -- among the scores of the episode
    PRIMARY KEY (name, seat, value, episode)
) WITHOUT ROWID;
CREATE INDEX scores_episode ON scores (episode);
CREATE TABLE labels ( -- of the file with labels, as SetLabels got them
    name    TEXT NOT NULL,
    value   REAL NOT NULL,
    episode INTEGER NOT NULL,
    PRIMARY KEY (name, value, episode)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE said USING fts5 (text, content = '', tokenize = 'unicode61');
CREATE TABLE hits (
    id      INTEGER PRIMARY KEY, -- in said
    episode INTEGER NOT NULL,
    call    TEXT NOT NULL,  -- the name of its turn, and of the call in it
    what    TEXT NOT NULL,  -- answer, thought, asked, note
    seat    TEXT NOT NULL
);
