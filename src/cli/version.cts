/** CommonJS, because `__dirname` is right both in the source and in the build. */
import fs = require('node:fs')

const { version } = JSON.parse(fs.readFileSync(`${__dirname}/../../package.json`, 'utf8')) as {
  readonly version: string
}

export = version
