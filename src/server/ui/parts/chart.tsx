import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { onThemeChange } from '../lib/preferences.js'

export interface Line {
  readonly name: string
  /** The name of a custom property. */
  readonly color: string
  readonly dash?: number[]
}

interface ChartProps {
  readonly label: string
  readonly lines: readonly Line[]
  /** Times in seconds, then the values of each line. */
  readonly data: readonly (readonly (number | null)[])[]
  readonly height?: number
  readonly format: (value: number) => string
  /** The point under the pointer, or undefined. */
  readonly onPoint?: (index: number | undefined) => void
}

/** A chart of lines over time. Its label has a summary, and the table beside it the figures. */
export function Chart({ label, lines, data, height = 180, format, onPoint }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const latest = useRef(data)
  latest.current = data

  useEffect(() => {
    const element = box.current
    if (element === null) return
    const build = (): void => {
      plot.current?.destroy()
      plot.current = new uPlot(
        optionsOf(element, { lines, height, format, onPoint }),
        latest.current as unknown as uPlot.AlignedData,
        element,
      )
    }
    build()
    const resized = new ResizeObserver(() => {
      const width = element.clientWidth
      if (width > 0 && width !== plot.current?.width) plot.current?.setSize({ width, height })
    })
    resized.observe(element)
    const stop = onThemeChange(build)
    return () => {
      stop()
      resized.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [])
  useEffect(() => {
    plot.current?.setData(data as unknown as uPlot.AlignedData)
  }, [data])

  return <div class="chart" ref={box} role="img" aria-label={label} />
}

/** The least top of the value axis, so that it has whole numbers even for a chart of nearly nothing. */
const LEAST_TOP = 4

function optionsOf(
  element: HTMLElement,
  { lines, height, format, onPoint }: Pick<ChartProps, 'lines' | 'format' | 'onPoint'> & { readonly height: number },
): uPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string): string => style.getPropertyValue(name).trim()
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  }
  return {
    width: element.clientWidth || 600,
    height,
    legend: { show: false },
    ...(onPoint && { hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] } }),
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    padding: [8, 28, 0, 0], // room for half of the last time label
    scales: { y: { range: (_, __, max) => [0, Math.max(LEAST_TOP, max * 1.1)] } },
    axes: [
      {
        ...axis,
        values: (_, times, __, ___, step) => times.map((at) => clock(at, step < 60)),
        space: 70,
        size: 26,
      },
      { ...axis, values: (_, values) => values.map((value) => format(value).replace(/\.0$/, '')), size: 52, space: 36 },
    ],
    series: [
      {},
      ...lines.map(({ name, color: of, dash }, at) => ({
        label: name,
        stroke: color(of),
        width: 1.6,
        points: { show: false },
        ...(at === 0 && { fill: `${color(of)}1a` }),
        ...(dash && { dash }),
      })),
    ],
  }
}

function clock(seconds: number, isExact: boolean): string {
  const date = new Date(seconds * 1_000)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${two(date.getHours())}:${two(date.getMinutes())}${isExact ? `:${two(date.getSeconds())}` : ''}`
}
