"""The book's schema, as numbered steps: migration N takes a book from version N-1 to N.

Laws. A migration that was released is never edited: a new one is added. Only additions that an
older reader may ignore keep old releases out of trouble, but an older release refuses a newer
book all the same (BOOK_NEWER): it would not write the columns that the newer one relies on.

Choices. ``lease.seq`` is the order of birth and what other tables point at; the id that people
type is unique over ended leases too, so that an id in an old log never means another lease.
A holder is spelled out in columns rather than as JSON, so that CHECK can hold its shape.
Events are rows written in the transaction of the change, so that the story and the state cannot
disagree. Bytes, thousandths and nanoseconds are integers.

Each page that a step touches is written to the WAL, whole, while all others wait. So pages are
small (a row is a few hundred bytes) and indexes few. A live lease is one whose ``ended_at`` is
NULL: the index of those is one page, touched at the birth and the end only, where one on
``state`` would be at each step. What ended since a time is found by reading all leases, and a
lease's story is a chain (``lease.last_event``, ``event.before``): indexes for these would be
written at each step or end to serve a rare question.
"""

APPLICATION_ID = 0x416C6971
"""``Aliq``: tells our book from any other SQLite file."""

_LEASES = """
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

CREATE INDEX lease_live ON lease (seq) WHERE ended_at IS NULL;
CREATE INDEX lease_name ON lease (name, seq) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX lease_live_name ON lease (name) WHERE ended_at IS NULL AND name IS NOT NULL;

CREATE TABLE share (
  lease    INTEGER NOT NULL REFERENCES lease (seq),
  position INTEGER NOT NULL CHECK (position >= 0),
  gpu      TEXT NOT NULL,
  memory   INTEGER CHECK (memory >= 0),
  compute  INTEGER NOT NULL CHECK (compute BETWEEN 1 AND 1000),
  whole    INTEGER NOT NULL CHECK (whole IN (0, 1)),
  PRIMARY KEY (lease, position)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE event (
  seq    INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  lease  INTEGER NOT NULL REFERENCES lease (seq),
  what   TEXT NOT NULL,
  detail TEXT,
  before INTEGER REFERENCES event (seq)
) STRICT;
"""

_CARDS = """
CREATE TABLE gpu (
  uuid       TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  capacity   INTEGER CHECK (capacity >= 0),
  first_seen INTEGER NOT NULL,
  last_seen  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cordon (
  gpu    TEXT PRIMARY KEY,
  reason TEXT,
  at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

_LIVE_CHANGES = """
ALTER TABLE lease ADD COLUMN isolation_why TEXT;
ALTER TABLE lease ADD COLUMN paused_at INTEGER;

CREATE TABLE past_share (
  lease    INTEGER NOT NULL REFERENCES lease (seq),
  stretch  INTEGER NOT NULL CHECK (stretch >= 0),
  position INTEGER NOT NULL CHECK (position >= 0),
  until    INTEGER NOT NULL,
  memory   INTEGER CHECK (memory >= 0),
  compute  INTEGER NOT NULL CHECK (compute BETWEEN 1 AND 1000),
  PRIMARY KEY (lease, stretch, position)
) STRICT, WITHOUT ROWID;
"""
"""``past_share``: what a lease had before its size was changed. GPU and wholeness never change."""

_UNKNOWN_FUNCTIONS = """
ALTER TABLE lease ADD COLUMN unknown TEXT NOT NULL DEFAULT 'refuse' CHECK (unknown IN ('refuse', 'pass'));
"""

_BUSY = """
ALTER TABLE usage ADD COLUMN busy_ns INTEGER CHECK (busy_ns >= 0);
"""
"""NULL for what ended before: nobody wrote it down."""

MIGRATIONS: tuple[str, ...] = (
    _LEASES,
    _CARDS,
    _LIVE_CHANGES,
    _UNKNOWN_FUNCTIONS,
    _BUSY,
)

SCHEMA_VERSION = len(MIGRATIONS)

PAGE_BYTES = 1024
"""Of a new book. Measured on a fast disk: 4 KiB pages cost a third more CPU per lease."""
