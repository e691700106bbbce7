-- One text for SQLite and PostgreSQL: TEXT and BIGINT only; flags are 0 or 1, compound values are JSON in TEXT, times are
-- milliseconds since 1970.

CREATE TABLE sandboxes (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    alias TEXT,
    project TEXT,
    provider TEXT NOT NULL,
    location TEXT NOT NULL,
    provider_id TEXT,
    template TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    limits TEXT NOT NULL,
    metadata TEXT NOT NULL,
    env TEXT NOT NULL,
    network TEXT,
    secrets TEXT NOT NULL,
    ports TEXT NOT NULL,
    public_ports TEXT NOT NULL,
    mounts TEXT NOT NULL,
    access_token TEXT NOT NULL,
    timeout_s BIGINT NOT NULL,
    timeout_action TEXT NOT NULL,
    expiry TEXT NOT NULL,
    is_auto_resumed BIGINT NOT NULL,
    lacks TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    started_ms BIGINT,
    stopped_ms BIGINT,
    last_activity_ms BIGINT NOT NULL,
    fixed_end_ms BIGINT,
    deleted_ms BIGINT,
    version BIGINT NOT NULL,
    claim_operation TEXT,
    claim_holder TEXT,
    claim_until_ms BIGINT
);
-- A deleted sandbox gives its alias back; this index also counts an owner's sandboxes.
CREATE UNIQUE INDEX sandboxes_alias ON sandboxes (owner, alias) WHERE status <> 'deleted';
-- For whoever may see everybody's.
CREATE INDEX sandboxes_by_alias ON sandboxes (alias) WHERE alias IS NOT NULL;
CREATE INDEX sandboxes_of_owner ON sandboxes (owner, created_ms, id);
CREATE INDEX sandboxes_newest ON sandboxes (created_ms, id);
CREATE INDEX sandboxes_provider_id ON sandboxes (provider_id);

CREATE TABLE idempotency (
    owner TEXT NOT NULL,
    idem_key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (owner, idem_key)
);

-- Numbers that only go up. A row here, and not the engine's own sequence: its lock makes numbers appear in their order,
-- so whoever reads on from a number misses nothing.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('events', 0), ('audit', 0);

CREATE TABLE events (
    seq BIGINT NOT NULL PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX events_of_sandbox ON events (sandbox_id, seq);
CREATE INDEX events_of_owner ON events (owner, seq);
CREATE INDEX events_by_time ON events (at_ms);

CREATE TABLE audit (
    seq BIGINT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    actor TEXT NOT NULL,
    via TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT,
    status BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    address TEXT
);
CREATE INDEX audit_of_actor ON audit (actor, seq);
CREATE INDEX audit_by_time ON audit (at_ms);

CREATE TABLE users (
    name TEXT NOT NULL PRIMARY KEY,
    password_hash TEXT,
    role TEXT NOT NULL,
    is_disabled BIGINT NOT NULL,
    max_sandboxes BIGINT,
    failures BIGINT NOT NULL,
    locked_until_ms BIGINT,
    created_ms BIGINT NOT NULL
);

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    name TEXT NOT NULL,
    mask TEXT NOT NULL,
    scopes TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT,
    last_used_ms BIGINT,
    revoked_ms BIGINT
);
CREATE INDEX api_keys_of_owner ON api_keys (owner);

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    refresh_hash TEXT NOT NULL,
    created_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    revoked_ms BIGINT
);
CREATE INDEX sessions_of_owner ON sessions (owner);

-- Secrets that sandboxes use without seeing them; `sealed` by a key that is not in here.
CREATE TABLE secrets (
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    sealed TEXT NOT NULL,
    hosts TEXT NOT NULL,
    placeholder TEXT NOT NULL,
    is_shared BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    PRIMARY KEY (owner, name)
);
CREATE INDEX secrets_shared ON secrets (name) WHERE is_shared = 1;

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    url TEXT,
    locations TEXT NOT NULL,
    version TEXT NOT NULL,
    started_ms BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL
);

CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    until_ms BIGINT NOT NULL
);

-- `ready_ms` is when somebody may take it: its due time, or the end of the lease while it is claimed.
CREATE TABLE timers (
    topic TEXT NOT NULL,
    subject TEXT NOT NULL,
    location TEXT NOT NULL,
    due_ms BIGINT NOT NULL,
    ready_ms BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_by TEXT,
    is_dead BIGINT NOT NULL,
    last_error TEXT,
    PRIMARY KEY (topic, subject)
);
CREATE INDEX timers_ready ON timers (location, ready_ms) WHERE is_dead = 0;

-- Templates that users made of their sandboxes: whose they are. Templates without a row are for everybody.
CREATE TABLE snapshots (
    location TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    -- Another name its owner gave it; moves on to the newest that is given it.
    alias TEXT,
    -- What it was made of.
    sandbox_id TEXT,
    created_ms BIGINT NOT NULL,
    PRIMARY KEY (location, name)
);
CREATE UNIQUE INDEX snapshots_alias ON snapshots (location, owner, alias);

-- Folders that outlive sandboxes and can be in several of them.
CREATE TABLE volumes (
    id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    location TEXT NOT NULL,
    status TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    token TEXT NOT NULL,
    created_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX volumes_name ON volumes (owner, name);
