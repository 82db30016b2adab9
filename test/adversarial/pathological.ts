/** Texts that regular expressions and parsers take badly: each is repeated until it has a million characters. */
export const SIZE = 2 ** 20

const PARTS: Readonly<Record<string, string>> = {
  spaces: ' ',
  tabs: '\t',
  'line breaks': '\r\n',
  'line breaks between spaces': ' \r\n ',
  'spaces before a letter': `${' '.repeat(1_000)}x`,
  'at signs': '@',
  'schemes of URLs': 'a://',
  'URLs with passwords': 'redis://u:p@h/ ',
  colons: ':',
  slashes: '/',
  quotes: '"',
  backslashes: '\\',
  digits: '7',
  'high surrogates': '\ud83d',
  'low surrogates': '\ude00',
  'combining marks': 'a\u0301\u0302\u0303',
  'ANSI codes': '\u001b[31m',
  'right to left': '\u202e\u05d0',
  'zero width': '\u200b\ufeff',
  'fillers of Hangul': '\u3164\u115f\u1160\uffa0',
  NUL: '\0',
  'percent signs': '%',
  'opening brackets': '[',
  'opening braces': '{',
  'brackets in brackets': '[{"a":',
  'references to variables': '${a:-',
  'dots and words': 'a.',
  'JSON on one line': '{"id":17,"name":"Ada"},',
  base64: 'AAECAwQFBgcICQoLDA0ODw==',
  'errors of scripts': '@user_script: 1: ',
  'JSON errors': 'Unexpected token "x" is not valid JSON ',
  mixed: ' @:/"\\7\u001b[\u202e%{[,',
  'a line of YAML': 'a: &a [*a, *a]\n',
}

/** Name and text; made when asked for, as all together would be large. */
export const pathological: readonly (readonly [name: string, make: () => string])[] = Object.entries(PARTS).map(
  ([name, part]) => [name, () => part.repeat(Math.ceil(SIZE / part.length)).slice(0, SIZE)],
)
