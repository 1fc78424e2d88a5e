// The write-ahead log as SQLite sees it: a file of ours, beneath which a commit is one write.
//
// SQLite writes every page of a commit with two calls, a header of 24 bytes and the page, and then
// syncs. Here they are gathered and go to the file with one call when SQLite syncs; so whoever uses
// this must have "PRAGMA synchronous=FULL", or commits would stay in memory. Whether a commit is
// then brought to the disk itself is for its writer to say.
//
// Order is as SQLite wants it: nothing that it wrote before a sync reaches the file after what it
// wrote later, and a sync that it needs for its own sake (a new header, a checkpoint) is always a
// real one. What is torn, the frames' own sums tell, as ever.
#pragma once

struct sqlite3;

namespace hearth::store {

// The name under which SQLite knows it, for sqlite3_open_v2: files other than write-ahead logs are
// those of SQLite. Registers it first if need be.
const char* write_ahead_vfs();

// Whether the commits of this connection from now on are on the disk itself when they return; until
// told otherwise they are. False leaves them with the kernel: they survive this process only.
void sync_commits(sqlite3* db, bool sync);

}  // namespace hearth::store
