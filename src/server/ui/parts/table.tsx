import type { ComponentChildren, JSX } from 'preact'

export interface Column<T> {
  readonly name: string
  readonly cell: (row: T) => ComponentChildren
  /** Numbers, aligned to the right. */
  readonly number?: boolean
  /** Takes the remaining width. */
  readonly wide?: boolean
  /** Sorts by this column. */
  readonly sort?: { readonly isOn: boolean; readonly onSort: () => void }
  /** The name is only for screen readers. */
  readonly quiet?: boolean
}

interface TableProps<T> {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly rowKey: (row: T) => string
  readonly empty: ComponentChildren
  readonly isLoading?: boolean
}

/** A table; on narrow screens each row is a card with the column names. It sets roles, because `display` removes them there. */
export function Table<T>({ label, columns, rows, rowKey, empty, isLoading = false }: TableProps<T>): JSX.Element {
  if (rows.length === 0 && !isLoading) return <div class="empty">{empty}</div>
  return (
    <div class="scroll">
      <table class="table" role="table" aria-label={label} aria-busy={isLoading}>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <Head key={column.name} column={column} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr role="row" key={rowKey(row)}>
              {columns.map((column) => (
                <td role="cell" key={column.name} class={classOf(column)} data-label={column.quiet ? '' : column.name}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {rows.length === 0 &&
            Array.from({ length: 5 }, (_, at) => (
              <tr role="row" key={at} class="placeholder">
                {columns.map((column) => (
                  <td role="cell" key={column.name}>
                    <span class="bone" />
                  </td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  )
}

function Head<T>({ column }: { readonly column: Column<T> }): JSX.Element {
  const { name, sort, quiet } = column
  return (
    <th
      role="columnheader"
      scope="col"
      class={classOf(column)}
      {...(sort?.isOn && { 'aria-sort': 'descending' as const })}
    >
      {sort ? (
        <button type="button" class="sort" onClick={sort.onSort}>
          {name}
          <span aria-hidden="true">{sort.isOn ? ' ↓' : ''}</span>
        </button>
      ) : quiet === true ? (
        <span class="unseen">{name}</span>
      ) : (
        name
      )}
    </th>
  )
}

function classOf<T>({ number, wide, quiet }: Column<T>): string {
  return [number && 'number', wide && 'wide', quiet && 'actions-cell'].filter(Boolean).join(' ')
}
