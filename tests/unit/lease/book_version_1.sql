-- A book as schema 1 wrote it (sqlite3 .dump): one held lease, one ended. Never edited.
PRAGMA user_version=1;
PRAGMA application_id=1097623921;
BEGIN TRANSACTION;
CREATE TABLE event (
  seq    INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  lease  INTEGER NOT NULL REFERENCES lease (seq),
  what   TEXT NOT NULL,
  detail TEXT,
  before INTEGER REFERENCES event (seq)
) STRICT;
INSERT INTO "event" VALUES(1,1700000000000000000,1,'preparing','for process 4242',NULL);
INSERT INTO "event" VALUES(2,1700000000000000000,2,'preparing','for nobody',NULL);
INSERT INTO "event" VALUES(3,1700000000100000000,1,'held',NULL,1);
INSERT INTO "event" VALUES(4,1700000000100000000,2,'held',NULL,2);
INSERT INTO "event" VALUES(5,1700000060000000000,2,'releasing','by process 4300',4);
INSERT INTO "event" VALUES(6,1700000060100000000,2,'ended','released',5);
CREATE TABLE lease (
  seq              INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  state            TEXT NOT NULL CHECK (state IN ('preparing', 'held', 'releasing', 'ended')),
  ask              TEXT NOT NULL,
  policy           TEXT NOT NULL,
  isolation        TEXT NOT NULL,
  holder           TEXT NOT NULL CHECK (holder IN ('process', 'container', 'nobody')),
  holder_pid       INTEGER,
  holder_start     INTEGER,
  holder_namespace INTEGER,
  engine           TEXT,
  endpoint         TEXT,
  release_on_stop  INTEGER CHECK (release_on_stop IN (0, 1)),
  user             TEXT NOT NULL,
  command          TEXT,
  name             TEXT,
  created_at       INTEGER NOT NULL,
  held_at          INTEGER,
  ended_at         INTEGER,
  expires_at       INTEGER,
  boot_id          TEXT,
  end_why          TEXT,
  worker_pid       INTEGER,
  worker_start     INTEGER,
  worker_namespace INTEGER,
  last_event       INTEGER,
  CHECK ((state = 'ended') = (ended_at IS NOT NULL)),
  CHECK (state <> 'held' OR held_at IS NOT NULL),
  CHECK (holder <> 'process' OR holder_pid IS NOT NULL),
  CHECK (holder <> 'container' OR (engine IS NOT NULL AND release_on_stop IS NOT NULL)),
  CHECK ((holder_pid IS NULL) = (holder_start IS NULL)),
  CHECK ((holder_pid IS NULL) = (holder_namespace IS NULL)),
  CHECK ((worker_pid IS NULL) = (worker_start IS NULL)),
  CHECK ((worker_pid IS NULL) = (worker_namespace IS NULL))
) STRICT;
INSERT INTO "lease" VALUES(1,'kx7f2','held','10GiB@25%','fair','soft','process',4242,123456,4026531836,NULL,NULL,NULL,'ann','python train.py','train',1700000000000000000,1700000000100000000,NULL,NULL,'0f1e2d3c-0000-4000-8000-000000000001',NULL,NULL,NULL,NULL,3);
INSERT INTO "lease" VALUES(2,'m3bq8','ended','1/4','fair','soft','nobody',NULL,NULL,NULL,NULL,NULL,NULL,'bob',NULL,NULL,1700000000000000000,1700000000100000000,1700000060100000000,NULL,NULL,'released',NULL,NULL,NULL,6);
CREATE TABLE share (
  lease    INTEGER NOT NULL REFERENCES lease (seq),
  position INTEGER NOT NULL CHECK (position >= 0),
  gpu      TEXT NOT NULL,
  memory   INTEGER CHECK (memory >= 0),
  compute  INTEGER NOT NULL CHECK (compute BETWEEN 1 AND 1000),
  whole    INTEGER NOT NULL CHECK (whole IN (0, 1)),
  PRIMARY KEY (lease, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "share" VALUES(1,0,'GPU-00000000-0000-4000-8000-000000000001',10737418240,250,0);
INSERT INTO "share" VALUES(2,0,'GPU-00000000-0000-4000-8000-000000000001',21474836480,250,0);
CREATE TABLE usage (
  lease          INTEGER NOT NULL REFERENCES lease (seq),
  position       INTEGER NOT NULL CHECK (position >= 0),
  gpu            TEXT NOT NULL,
  wall_ns        INTEGER NOT NULL CHECK (wall_ns >= 0),
  leased_bytes   INTEGER CHECK (leased_bytes >= 0),
  leased_compute INTEGER NOT NULL CHECK (leased_compute >= 0),
  peak_bytes     INTEGER CHECK (peak_bytes >= 0),
  mean_bytes     REAL CHECK (mean_bytes >= 0),
  denied         INTEGER CHECK (denied >= 0),
  PRIMARY KEY (lease, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "usage" VALUES(2,0,'GPU-00000000-0000-4000-8000-000000000001',60000000000,21474836480,250,1073741824,536870912.5,2);
CREATE INDEX lease_live ON lease (seq) WHERE ended_at IS NULL;
CREATE INDEX lease_name ON lease (name, seq) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX lease_live_name ON lease (name) WHERE ended_at IS NULL AND name IS NOT NULL;
COMMIT;
