-- The views of a run file, for people. docs/reference/run-file.md describes every column.

CREATE VIEW episodes AS
WITH RECURSIVE e (episode, stage, last) AS (
    SELECT first, stage, first + count - 1 FROM stages WHERE count > 0
    UNION ALL
    SELECT episode + 1, stage, last FROM e WHERE episode < last
    ORDER BY 1
)
SELECT e.episode,
       e.stage,
       s.kind,
       s.cell,
       s.deal + (e.episode - s.block) / s.round AS deal,
       p.text AS params,
       l.text AS lineup,
       m.text AS more,
       CASE WHEN o.seq IS NULL THEN CASE WHEN g.first THEN 'playing' ELSE 'waiting' END
            WHEN o.failed IS NULL THEN 'ended' ELSE 'failed' END AS state,
       CASE WHEN g.first OR g.ended THEN g.attempt END AS attempt,
       o.failed,
       o.scores,
       o.data,
       strftime('%Y-%m-%dT%H:%M:%fZ', o.at / 1e9, 'unixepoch') AS ended_at
FROM e
LEFT JOIN specs b ON b.episode = (SELECT max(episode) FROM specs WHERE episode <= e.episode)
LEFT JOIN specs s ON s.episode = (SELECT max(episode) FROM specs WHERE episode <= b.block + (e.episode - b.block) % b.round)
LEFT JOIN progress g ON g.episode = e.episode
LEFT JOIN outcomes o ON o.episode = e.episode AND g.ended AND o.attempt = g.attempt
LEFT JOIN texts p ON p.id = s.params
LEFT JOIN texts l ON l.id = s.lineup
LEFT JOIN texts m ON m.id = s.more;

CREATE VIEW calls AS
SELECT r.seq AS call,
       r.episode, r.attempt, r.strand, r.turn, r.place,
       r.seat, r.label, r.agent,
       CASE WHEN r.flags & 512 THEN 'act' WHEN r.flags & 64 THEN 'program' WHEN r.flags & 4 THEN 'ask' ELSE 'bot' END AS kind,
       json_extract(s.text, '$.model') AS asked,
       r.model, r.provider,
       a.text AS text,
       CASE typeof(r.json) WHEN 'integer' THEN a.text ELSE r.json END AS json,
       r.finish,
       r.error, r.message, r.status,
       r.input AS input_tokens,
       r.cached AS cached_tokens,
       r.cache_write + r.cache_write_long AS written_tokens,
       r.output AS output_tokens,
       r.reasoning AS reasoning_tokens,
       CASE WHEN r.flags & 8 THEN 0 ELSE r.cost END / 1e9 AS dollars,
       r.latency / 1e9 AS seconds,
       r.first_byte / 1e9 AS first_byte_seconds,
       r.waited / 1e9 AS waited_seconds,
       r.tries,
       r.flags & 16 <> 0 AS from_cache,
       r.flags & 8 <> 0 AS copied,
       r.parsed,
       r.act, r.body,
       s.text AS settings,
       r.rest,
       r.request_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.at / 1e9, 'unixepoch') AS at
FROM replies r
LEFT JOIN texts s ON s.id = r.settings
LEFT JOIN texts a ON a.id = r.answer;

CREATE VIEW messages AS
SELECT r.seq AS call,
       r.episode, r.attempt, r.strand, r.turn, r.place, r.seat, r.label,
       j.key AS n,
       CASE substr(r.roles, j.key + 1, 1) WHEN 's' THEN 'system' WHEN 'u' THEN 'user' WHEN 'a' THEN 'assistant'
            WHEN 't' THEN 'tool' ELSE json_extract(t.rest, '$.role') END AS role,
       t.text,
       t.rest
FROM replies r, json_each(r.prompt) j
JOIN texts t ON t.id = j.value;

CREATE VIEW scores AS
SELECT o.episode,
       s.cell,
       json_extract(j.value, '$.seat') AS seat,
       (SELECT e.value FROM json_each(l.text) e WHERE e.key = json_extract(j.value, '$.seat')) AS agent,
       json_extract(j.value, '$.name') AS name,
       CASE json_type(j.value, '$.value') WHEN 'text' THEN json_extract(j.value, '$.value')
            ELSE CAST(json_extract(j.value, '$.value') AS REAL) END AS value
FROM outcomes o
JOIN progress g ON g.episode = o.episode AND g.ended AND g.attempt = o.attempt
JOIN json_each(o.scores) j
LEFT JOIN specs b ON b.episode = (SELECT max(episode) FROM specs WHERE episode <= o.episode)
LEFT JOIN specs s ON s.episode = (SELECT max(episode) FROM specs WHERE episode <= b.block + (o.episode - b.block) % b.round)
LEFT JOIN texts l ON l.id = s.lineup;

CREATE VIEW notes AS
SELECT t.episode, t.attempt, t.strand, t.turn,
       j.key AS n,
       json_extract(j.value, '$.kind') AS kind,
       json_extract(j.value, '$.seat') AS seat,
       json_extract(j.value, '$.data') AS data
FROM turns t, json_each(t.notes) j;

CREATE VIEW costs AS
SELECT agent,
       coalesce(model, asked) AS model,
       count(*) AS calls,
       sum(error IS NOT NULL) AS failed,
       sum(input_tokens) AS input_tokens,
       sum(cached_tokens) AS cached_tokens,
       sum(output_tokens) AS output_tokens,
       sum(reasoning_tokens) AS reasoning_tokens,
       sum(dollars) AS dollars,
       avg(seconds) AS seconds
FROM calls
WHERE kind = 'ask'
GROUP BY 1, 2;

CREATE VIEW batches AS
SELECT json_extract(i.data, '$.key') AS key,
       json_extract(i.data, '$.provider') AS provider,
       json_extract(i.data, '$.model') AS model,
       json_array_length(i.data, '$.lines') AS lines,
       json_extract(i.data, '$.worst') / 1e9 AS worst_dollars,
       strftime('%Y-%m-%dT%H:%M:%fZ', i.at / 1e9, 'unixepoch') AS sent_at,
       json_extract(c.data, '$.batch') AS batch,
       json_extract(f.data, '$.file') AS file,
       json_extract(e.data, '$.why') AS closed,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.at / 1e9, 'unixepoch') AS closed_at
FROM events i
LEFT JOIN events f ON f.what = 'batched' AND json_extract(f.data, '$.step') = 'uploaded' AND json_extract(f.data, '$.key') = json_extract(i.data, '$.key')
LEFT JOIN events c ON c.what = 'batched' AND json_extract(c.data, '$.step') = 'created' AND json_extract(c.data, '$.key') = json_extract(i.data, '$.key')
LEFT JOIN events e ON e.what = 'batched' AND json_extract(e.data, '$.step') = 'closed' AND json_extract(e.data, '$.key') = json_extract(i.data, '$.key')
WHERE i.what = 'batched' AND json_extract(i.data, '$.step') = 'intended';
