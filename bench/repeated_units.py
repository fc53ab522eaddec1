"""Many units in a database of the API server (SQLite), made of few that it has written itself: ten million take it an hour."""

import contextlib
import sqlite3

TABLES = ("units", "ceems_unit_facts", "ceems_unit_reports")
APART = 7  # ms between two copies of a unit


def repeat_units(path, wanted):
    """Adds copies of the units under other IDs until there are `wanted`, each a little later than the one before it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for setting in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-500000", "locking_mode=EXCLUSIVE"):
            db.execute("PRAGMA " + setting)
        count, = db.execute("SELECT count(*) FROM units").fetchone()
        db.execute("DELETE FROM ceems_unit_spans")  # the sums are of the first units only
        db.execute("DELETE FROM ceems_unit_sums")
        for table in TABLES:
            repeat(db, table, count, wanted)


def repeat(db, table, count, wanted):
    """Indexes are made anew at the end, which is much faster."""
    dropped = db.execute("SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? AND type IN ('index', 'trigger') "
                         "AND sql IS NOT NULL", (table,)).fetchall()
    for kind, name, _ in dropped:
        db.execute("DROP %s %s" % (kind, name))
    changed = {"id": "NULL", "uuid": "uuid || '-' || ?1", "started_at_ts": "started_at_ts + ?1 * %d" % APART,
               "ended_at_ts": "ended_at_ts + ?1 * %d" % APART}
    names = [row[1] for row in db.execute("PRAGMA table_info(%s)" % table)]
    columns, values = ", ".join(names), ", ".join(changed.get(name, name) for name in names)
    last, = db.execute("SELECT max(rowid) FROM %s" % table).fetchone()
    db.execute("BEGIN")
    for copy in range(1, -(-wanted // count)):
        db.execute("INSERT INTO %s (%s) SELECT %s FROM %s WHERE rowid <= ?2 LIMIT ?3" % (table, columns, values, table),
                   (copy, last, wanted - copy * count))
    db.execute("COMMIT")
    for _, _, sql in dropped:
        db.execute(sql)
