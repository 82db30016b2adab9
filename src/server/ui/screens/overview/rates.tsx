import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Overview, SeriesPoint } from '../../api/types.js'
import { rate } from '../../lib/format.js'
import { Chart, type Line } from '../../parts/chart.js'
import { Moment } from '../../parts/moment.js'

type Name = Exclude<keyof SeriesPoint, 'at'>

const LINES: readonly (Line & { readonly key: Name })[] = [
  { key: 'pushed', name: 'Pushed', color: '--line-1' },
  { key: 'delivered', name: 'Delivered', color: '--line-2' },
  { key: 'acknowledged', name: 'Acknowledged', color: '--line-3', dash: [6, 3] },
  { key: 'failed', name: 'Failed', color: '--line-4', dash: [2, 3] },
]

const WINDOW_S = 900

/** The rates of the last 15 minutes. */
export function Rates({ of }: { readonly of: Overview }): JSX.Element {
  const [point, setPoint] = useState<number | undefined>(undefined)
  const { series, rates } = of
  const data = useMemo(
    () =>
      series.length < 2
        ? [[of.at / 1_000 - WINDOW_S, of.at / 1_000], ...LINES.map(() => [null, null])]
        : [series.map(({ at }) => at / 1_000), ...LINES.map(({ key }) => series.map((each) => each[key]))],
    [series],
  )
  const shown = point === undefined ? undefined : series[point]
  return (
    <section class="panel" aria-labelledby="rates">
      <div class="panel-head">
        <h2 id="rates">Messages a second</h2>
        <span class="muted small">
          {shown ? (
            <Moment at={shown.at} />
          ) : series.length < 2 ? (
            'this instance; the first figures come within half a minute'
          ) : (
            'last 15 minutes, this instance'
          )}
        </span>
        <ul class="legend">
          {LINES.map(({ key, name, color }) => (
            <li key={key} class={`legend-${color.slice(2)}`}>
              {name} <b>{rate(shown ? shown[key] : rates[key])}</b>
            </li>
          ))}
        </ul>
      </div>
      <Chart
        label={`Messages a second in the last 15 minutes. Now: ${LINES.map(({ key, name }) => `${name} ${rate(rates[key])}`).join(', ')}.`}
        lines={LINES}
        data={data}
        format={rate}
        onPoint={setPoint}
      />
    </section>
  )
}
