#include "kernel/tuner_store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/config.h"

enum { APPLICATION = 0x72646e61, VERSION = 1, BUSY_MS = 1000 }; /* "rdna" */

struct rdna__tuner_store {
  sqlite3 *database;
  char path[4096];
};

void rdna__tuner_store_path(char path[4096]) {
  const char *chosen = rdna__config_text(RDNA__CONFIG_TUNE_FILE), *cache = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  if (chosen[0])
    snprintf(path, 4096, "%s", chosen);
  else if (cache && cache[0] == '/')
    snprintf(path, 4096, "%s/rdna/tune.sqlite", cache);
  else if (home && home[0] == '/')
    snprintf(path, 4096, "%s/.cache/rdna/tune.sqlite", home);
  else
    path[0] = 0;
}

static void make_folders(const char *path) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path);
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(folder, 0700); /* what fails here fails again, with a sentence, at the file */
    *slash = '/';
  }
}

static rdna_status fail(rdna__tuner_store *store, const char *what) {
  int code = sqlite3_errcode(store->database);
  rdna_status status = code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? RDNA_BAD_DATA : RDNA_IO_ERROR;
  return rdna__fail(status,
                    "%s the tuner's database %s: %s; choices are kept in this process alone. Delete the file, "
                    "or set RDNA_TUNE_FILE to another",
                    what, store->path, sqlite3_errmsg(store->database));
}

static bool execute(rdna__tuner_store *store, const char *sql) {
  return sqlite3_exec(store->database, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool read_number(rdna__tuner_store *store, const char *sql, int *out_number) {
  sqlite3_stmt *statement = NULL;
  bool good = sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
  if (good) *out_number = sqlite3_column_int(statement, 0);
  sqlite3_finalize(statement);
  return good;
}

static rdna_status prepare(rdna__tuner_store *store) {
  int application = 0, version = 0;
  sqlite3_busy_timeout(store->database, BUSY_MS);
  /* what a loss of power takes is measured again; waiting for the disk would hold up the others */
  execute(store, "PRAGMA synchronous = OFF");
  /* in one transaction: between two, another process may have made the file, and half of it would look foreign */
  if (!execute(store, "BEGIN") || !read_number(store, "PRAGMA application_id", &application) ||
      !read_number(store, "PRAGMA user_version", &version) || !execute(store, "COMMIT"))
    return fail(store, "reading");
  if (application == 0 && version == 0) {
    /* a new file; two processes may both find it new */
    if (!execute(store, "BEGIN IMMEDIATE") ||
        !execute(store,
                 "CREATE TABLE IF NOT EXISTS choice (gpu TEXT, arch TEXT, driver TEXT, pack TEXT, operator TEXT, "
                 "shape TEXT, libraries TEXT, implementation TEXT NOT NULL, ms REAL NOT NULL, next TEXT NOT NULL, "
                 "next_ms REAL NOT NULL, PRIMARY KEY (gpu, arch, driver, pack, operator, shape, libraries)) WITHOUT "
                 "ROWID; PRAGMA application_id = 1919184481; PRAGMA user_version = 1") ||
        !execute(store, "COMMIT"))
      return fail(store, "making");
    return RDNA_OK;
  }
  if (application != APPLICATION || version != VERSION)
    return rdna__fail(RDNA_BAD_DATA,
                      "%s is a database of something else, or of version %d of ours, where %d is known; choices are "
                      "kept in this process alone. Set RDNA_TUNE_FILE to another file",
                      store->path, version, VERSION);
  return RDNA_OK;
}

rdna_status rdna__tuner_store_open(const char *path, rdna__tuner_store **out_store) {
  *out_store = NULL;
  rdna__tuner_store *store = calloc(1, sizeof *store);
  if (!store) return rdna__fail(RDNA_OUT_OF_MEMORY, "no host memory for the tuner's database");
  snprintf(store->path, sizeof store->path, "%s", path);
  make_folders(path);
  rdna_status status = RDNA_OK;
  if (sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
                      NULL) != SQLITE_OK)
    status = fail(store, "opening");
  if (status == RDNA_OK) status = prepare(store);
  if (status != RDNA_OK) {
    rdna__tuner_store_close(store);
    return status;
  }
  *out_store = store;
  return RDNA_OK;
}

void rdna__tuner_store_close(rdna__tuner_store *store) {
  if (!store) return;
  sqlite3_close(store->database);
  free(store);
}

static const char *text(sqlite3_stmt *statement, int column) {
  const char *found = (const char *)sqlite3_column_text(statement, column);
  return found ? found : "";
}

rdna_status rdna__tuner_store_read(rdna__tuner_store *store, const char *gpu, const char *arch,
                                   void (*visit)(void *context, const rdna__tuner_row *row), void *context) {
  static const char sql[] =
      "SELECT gpu, arch, driver, pack, operator, shape, libraries, implementation, next, ms, next_ms FROM choice WHERE "
      "?1 IS NULL OR (gpu = ?1 AND arch = ?2) ORDER BY gpu, arch, operator, shape";
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL);
  if (code == SQLITE_OK && gpu) {
    sqlite3_bind_text(statement, 1, gpu, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, arch, -1, SQLITE_STATIC);
  }
  while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    const char *t[9];
    for (int i = 0; i < 9; i++) t[i] = text(statement, i);
    rdna__tuner_row row = {t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], 0, 0};
    row.ms = sqlite3_column_double(statement, 9), row.next_ms = sqlite3_column_double(statement, 10);
    visit(context, &row);
    code = SQLITE_OK;
  }
  rdna_status status = code == SQLITE_DONE ? RDNA_OK : fail(store, "reading");
  sqlite3_finalize(statement);
  return status;
}

rdna_status rdna__tuner_store_write(rdna__tuner_store *store, const rdna__tuner_row *row) {
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(store->database, "INSERT OR REPLACE INTO choice VALUES (?,?,?,?,?,?,?,?,?,?,?)", -1,
                                &statement, NULL);
  const char *texts[] = {row->gpu,           row->arch,  row->driver,    row->pack,
                         row->operator_name, row->shape, row->libraries, row->implementation};
  for (int i = 0; i < 8 && code == SQLITE_OK; i++)
    code = sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_double(statement, 9, row->ms);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 10, row->next, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_double(statement, 11, row->next_ms);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  rdna_status status = code == SQLITE_DONE ? RDNA_OK : fail(store, "writing");
  sqlite3_finalize(statement);
  return status;
}
