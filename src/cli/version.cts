/** CommonJS, because only that knows where it is both in the source and in what was built. */
import fs = require('node:fs')

const { version } = JSON.parse(fs.readFileSync(`${__dirname}/../../package.json`, 'utf8')) as {
  readonly version: string
}

export = version
