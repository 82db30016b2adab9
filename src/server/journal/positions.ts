import { sql as text, type RawBuilder } from 'kysely'
import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { isConflict } from '../database/failures.js'
import { sqlNow } from '../database/sql-clock.js'
import type { Bytes, PositionTable } from '../database/tables.js'

/** How far the journal has a queue's change stream. */
export interface Position {
  readonly generation: number
  /** `null`: the entry at `id` need not be there, and the next one says the epoch. */
  readonly epoch: string | null
  readonly id: string
  /** Of the entry at `id`: another server can have another entry of this id. */
  readonly digest: string | null
  readonly isRepairing: boolean
  /** Entries until this time can be in SQL already. */
  readonly rereadUntil: number
}

/** So long a restore has a queue to itself after it has said so last. */
export const LEASE_MS = 15_000

/** The two numbers of a stream's id. */
export function idParts(id: string): { ms: number; seq: number } {
  const [ms = 0, seq = 0] = id.split('-').map(Number)
  return { ms, seq }
}

/** The positions of the queues in the database. What moves one names where it was, so that of two instances one succeeds. */
export class Positions {
  readonly #database: JournalDatabase

  constructor(database: JournalDatabase) {
    this.#database = database
  }

  async load(queue: Bytes): Promise<Position> {
    for (;;) {
      const row = await this.row(queue)
      if (row !== undefined) return positionOf(row)
      await this.#create(queue)
    }
  }

  row(queue: Bytes): Promise<PositionTable | undefined> {
    return this.#database.run((sql) =>
      sql.selectFrom('redelayed_positions').selectAll().where('queue', '=', queue).executeTakeFirst(),
    )
  }

  /** Within the transaction that writes what the changes made; false when another instance has moved it. */
  async advance(
    sql: SqlTransaction,
    queue: Bytes,
    from: Position,
    to: Pick<Position, 'epoch' | 'id' | 'digest'>,
  ): Promise<boolean> {
    const { ms, seq } = idParts(from.id)
    const { ms: change_ms, seq: change_seq } = idParts(to.id)
    const { numUpdatedRows } = await sql
      .updateTable('redelayed_positions')
      .set({ epoch: to.epoch, change_ms, change_seq, digest: to.digest === null ? null : `${to.id} ${to.digest}` })
      .where('queue', '=', queue)
      .where('generation', '=', from.generation)
      .where('change_ms', '=', ms)
      .where('change_seq', '=', seq)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /**
   * Redis has forgotten something: what comes now is of another generation, and what Redis lacks has to be put back. The stream is read from its
   * beginning, because nothing says up to which of its entries SQL has them. False when another instance has moved the position.
   */
  async begin(sql: SqlTransaction, queue: Bytes, from: Position): Promise<boolean> {
    const { ms, seq } = idParts(from.id)
    const { numUpdatedRows } = await sql
      .updateTable('redelayed_positions')
      .set({
        generation: from.generation + 1,
        epoch: null,
        change_ms: 0,
        change_seq: 0,
        digest: null,
        reread_until: Math.max(from.rereadUntil, ms),
        repair: 1,
        repair_stage: 'open',
        repair_id: null,
        repair_until: 0,
      })
      .where('queue', '=', queue)
      .where('generation', '=', from.generation)
      .where('change_ms', '=', ms)
      .where('change_seq', '=', seq)
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /**
   * Takes the lease of whoever restores a queue, unless another one has it; `pending`: only where a repair is to be done. It goes by the clock of the
   * database: those of the instances differ, and a Redis that takes over can have another one than the Redis before.
   */
  async claimRepair(
    queue: Bytes,
    owner: string,
    { pending }: { readonly pending: boolean },
  ): Promise<PositionTable | undefined> {
    const { numUpdatedRows } = await this.#database.run((sql) => {
      const now = sqlNow(this.#database.kind)
      const free = sql
        .updateTable('redelayed_positions')
        .set({ repair_owner: owner, repair_until: this.#afterMs(LEASE_MS) })
        .where('queue', '=', queue)
        .where((where) =>
          where.or([
            where('repair_owner', '=', owner),
            where('repair_until', '<', now),
            // a clock was set back: no process has a lease that ends so late
            where('repair_until', '>', this.#afterMs(2 * LEASE_MS)),
          ]),
        )
      return (pending ? free.where('repair', '=', 1) : free).executeTakeFirst()
    })
    return numUpdatedRows > 0n ? this.row(queue) : undefined
  }

  async releaseRepair(queue: Bytes, owner: string): Promise<void> {
    await this.#database.run((sql) =>
      sql
        .updateTable('redelayed_positions')
        .set({ repair_until: 0 })
        .where('queue', '=', queue)
        .where('repair_owner', '=', owner)
        .execute(),
    )
  }

  /** Notes how far a repair is; false when it is another instance's by now, or Redis has forgotten something once more. */
  async noteRepair(
    queue: Bytes,
    { owner, generation }: { readonly owner: string; readonly generation: number },
    progress: { readonly stage: string; readonly id: Bytes | null; readonly isDone?: boolean },
  ): Promise<boolean> {
    const { numUpdatedRows } = await this.#database.run((sql) =>
      sql
        .updateTable('redelayed_positions')
        .set({
          repair_stage: progress.stage,
          repair_id: progress.id,
          // whoever restores next, by hand, need not wait for the end of the lease
          repair_until: progress.isDone === true ? 0 : this.#afterMs(LEASE_MS),
          repair: progress.isDone === true ? 0 : 1,
        })
        .where('queue', '=', queue)
        .where('repair_owner', '=', owner)
        .where('generation', '=', generation)
        .executeTakeFirst(),
    )
    // MySQL counts rows that were changed, and the lease always changes
    return numUpdatedRows > 0n
  }

  #afterMs(ms: number): RawBuilder<number> {
    return text`${sqlNow(this.#database.kind)} + ${text.lit(ms)}`
  }

  async #create(queue: Bytes): Promise<void> {
    const row: PositionTable = {
      queue,
      generation: 1,
      epoch: null,
      change_ms: 0,
      change_seq: 0,
      digest: null,
      reread_until: 0,
      config: null,
      repair: 0,
      repair_stage: 'open',
      repair_id: null,
      repair_owner: '',
      repair_until: 0,
    }
    try {
      await this.#database.run((sql) => sql.insertInto('redelayed_positions').values(row).execute())
    } catch (error) {
      if (!isConflict((error as Error).cause)) throw error
    }
  }
}

function positionOf(row: PositionTable): Position {
  const { generation, epoch, repair, reread_until } = row
  const id = `${row.change_ms}-${row.change_seq}`
  // a process of an earlier version moves the position, and leaves the digest of another entry
  const [of, digest = null] = row.digest?.split(' ') ?? []
  return {
    generation,
    epoch,
    id,
    digest: of === id ? digest : null,
    isRepairing: repair === 1,
    rereadUntil: reread_until,
  }
}
