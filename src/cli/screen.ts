const CLEAR_TO_END = '\x1b[0J'

/** A picture at a terminal that is redrawn in place. */
export interface Screen {
  draw(lines: readonly string[]): void
}

interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

/** Draws each picture over the one before. Lines are cut to the terminal's width, so that their number is known. */
export function screenOn(terminal: Terminal): Screen {
  let height = 0
  return {
    draw(lines) {
      const [columns, rows] = [terminal.columns ?? 80, terminal.rows ?? 24]
      const most = Math.max(1, rows - 2)
      const left = lines.length - most
      const shown = left > 0 ? [...lines.slice(0, most), `… ${left} more`] : lines
      const up = height === 0 ? '' : `\x1b[${height}A\r`
      height = shown.length
      terminal.write(up + CLEAR_TO_END + shown.map((line) => `${line.slice(0, columns - 1)}\n`).join(''))
    },
  }
}
