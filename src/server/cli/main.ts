#!/usr/bin/env node
// `redelayed-server`: starts the delay service; `redelayed-server key` makes an API key; `redelayed-server journal …` maintains a journal.
const [, , command] = process.argv
if (command === 'journal') await import('./journal.js')
else if (command === 'key') await import('./key.js')
else await import('./serve.js')
