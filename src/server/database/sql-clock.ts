import { sql, type RawBuilder } from 'kysely'
import type { DatabaseKind } from './migrations.js'

/** The database's clock in epoch milliseconds: all instances have the same one, whatever Redis says the time is. */
export function sqlNow(kind: DatabaseKind): RawBuilder<number> {
  switch (kind) {
    case 'sqlite':
      return sql`cast((julianday('now') - 2440587.5) * 86400000 as integer)`
    case 'postgres':
      return sql`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`
    case 'mysql':
      // a time of the session's zone can be one of two when clocks are set back
      return sql`timestampdiff(microsecond, '1970-01-01', utc_timestamp(3)) div 1000`
  }
}
