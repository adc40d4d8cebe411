-- The tables of bandog. Made at first use by whoever may create them; otherwise run this once, as their owner to be, and
-- GRANT USAGE ON SCHEMA {schema} TO …; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO …;
CREATE SCHEMA IF NOT EXISTS {schema};

-- The format of these tables, and of what stands in them.
CREATE TABLE IF NOT EXISTS {schema}.store (
    id smallint PRIMARY KEY CHECK (id = 1),
    format smallint NOT NULL
);
INSERT INTO {schema}.store VALUES (1, {format}) ON CONFLICT DO NOTHING;

-- One row for each lock that is used, or was until a few seconds ago. The record alone counts; what stands beside it is for people, and
-- as it was at the last write.
CREATE TABLE IF NOT EXISTS {schema}.lock (
    name text COLLATE "C" PRIMARY KEY,
    due timestamptz NOT NULL,
    holders integer NOT NULL,
    waiters integer NOT NULL,
    held_by text,
    lease_end timestamptz,
    stamp bigint NOT NULL,
    record bytea NOT NULL
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A coarse upper bound of the record's end: it changes seldom, so that an update needs no new entry in an index.
CREATE INDEX IF NOT EXISTS lock_due ON {schema}.lock (due);

-- Fails the transaction of whoever calls it, unless the token is of the last grant of the lock; and until that transaction ends, nobody
-- else is granted the lock. Renewals do not wait. A token has 11 bits for what a process hands on to itself behind the stamp.
CREATE OR REPLACE FUNCTION {schema}.bandog_assert(lock_name text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last bigint;
BEGIN
    SELECT stamp INTO last FROM {schema}.lock WHERE name = lock_name FOR KEY SHARE;
    IF last IS DISTINCT FROM token >> 11 THEN
        RAISE EXCEPTION 'lock % has been granted again, or was given up: token % is not its last', lock_name, token
            USING ERRCODE = 'BD001';
    END IF;
END
$$;
