import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { visibleLine } from '../lib/visible-text.js'

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly placeholder?: string
  readonly type?: 'text' | 'datetime-local'
  readonly list?: string
  /** The key `/` focuses this field. */
  readonly isSearch?: boolean
}

const WAIT_MS = 300

/** A field whose value is applied when typing pauses, or on Enter. */
export function TextField({
  label,
  value,
  onChange,
  placeholder,
  type = 'text',
  list,
  isSearch,
}: TextFieldProps): JSX.Element {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text), WAIT_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type={type}
        value={text}
        placeholder={placeholder}
        list={list}
        autocomplete="off"
        spellcheck={false}
        maxLength={600}
        step={type === 'datetime-local' ? 1 : undefined}
        data-search={isSearch}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onChange(text)
        }}
      />
    </label>
  )
}

interface SelectFieldProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly onChange: (value: string) => void
}

export function SelectField({ label, value, options, onChange }: SelectFieldProps): JSX.Element {
  const isKnown = options.some(([option]) => option === value)
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {!isKnown && <option value={value}>{visibleLine(value, 60)}</option>}
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
