import { sql as text, type RawBuilder } from 'kysely'
import type { JournalDatabase, SqlTransaction } from '../database/database.js'
import { isConflict } from '../database/failures.js'
import { sqlNow } from '../database/sql-clock.js'
import type { Bytes, PositionTable } from '../database/tables.js'

/** The place in a queue's change stream up to which the journal has read it. */
export interface Position {
  readonly generation: number
  /** `null`: the entry at `id` need not exist, and the next one brings the epoch. */
  readonly epoch: string | null
  readonly id: string
  /** The digest of the entry at `id`: another server can have another entry with this id. */
  readonly digest: string | null
  readonly isRepairing: boolean
  /** Entries up to this time may already be in SQL. */
  readonly rereadUntil: number
}

/** The lease of a restore: it has the queue to itself for this time after each renewal. */
export const RESTORE_CLAIM_MS = 15_000

/** The two numbers of a stream's id. */
export function idParts(id: string): { ms: number; seq: number } {
  const [ms = 0, seq = 0] = id.split('-').map(Number)
  return { ms, seq }
}

/** The positions of the queues in the database. Each move names the position before it, so that only one of two instances succeeds. */
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

  /** Moves the position, in the transaction that writes the changes; false when another instance has moved it. */
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
   * Redis has forgotten something: begins a new generation and a repair that puts back what Redis lacks. The stream is read from its
   * beginning, because SQL cannot know which of its entries it has. False when another instance has moved the position.
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
   * Takes the lease for restoring a queue, unless another owner has it; `pending`: only if a repair is due. The lease uses the clock of the
   * database: the clocks of the instances differ, and so can that of a Redis that takes over.
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
        .set({ repair_owner: owner, repair_until: this.#afterMs(RESTORE_CLAIM_MS) })
        .where('queue', '=', queue)
        .where((where) =>
          where.or([
            where('repair_owner', '=', owner),
            where('repair_until', '<', now),
            // the clock was set back: no valid lease ends so late
            where('repair_until', '>', this.#afterMs(2 * RESTORE_CLAIM_MS)),
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

  /** Saves the progress of a repair; false when another instance has the lease by now, or Redis has forgotten something again. */
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
          // so a restore by hand need not wait for the end of the lease
          repair_until: progress.isDone === true ? 0 : this.#afterMs(RESTORE_CLAIM_MS),
          repair: progress.isDone === true ? 0 : 1,
        })
        .where('queue', '=', queue)
        .where('repair_owner', '=', owner)
        .where('generation', '=', generation)
        .executeTakeFirst(),
    )
    // MySQL counts only changed rows, and the lease always changes
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
  // a process of an earlier version moves the position without the digest, which then is of another entry
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
