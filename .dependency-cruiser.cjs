// The layer check: in src a folder is a layer, and a layer imports from itself and from those before it, never back.
// It guards what makes the library testable: timers that know nothing of Redis, one file that knows key names, one
// folder that knows Lua. `npm run lint` runs it; test/unit/layers.test.ts shows that it can fail.

/** In order; a layer is the list of paths that belong to it. */
const layers = {
  base: ['src/(text|clean-error|errors|events|instrumentation|options)\\.ts$'],
  foundations: ['src/keys\\.ts$', 'src/codec/', 'src/timing/'],
  lua: ['src/lua/'],
  connection: ['src/connection/'],
  transfer: ['src/transfer/'],
  queues: ['src/queues/'],
  reliable: ['src/reliable/'],
  workers: ['src/workers/'],
  redisson: ['src/redisson/'],
  client: ['src/client\\.ts$'],
  index: ['src/index\\.ts$'],
  observability: ['src/observability/'],
  testing: ['src/testing/'],
  service: ['src/service/'],
}

const names = Object.keys(layers)
const pathOf = (/** @type {string[]} */ some) => `^(${some.flatMap((name) => layers[name]).join('|')})`

const layerRules = names.slice(0, -1).map((name, index) => ({
  name: `layer-${name}`,
  comment: `${name} may import only from itself and from ${names.slice(0, index).join(', ') || 'nothing else in src'}`,
  severity: 'error',
  from: { path: pathOf([name]) },
  to: { path: '^src/', pathNot: pathOf(names.slice(0, index + 1)) },
}))

const DOCTOR = '^src/service/doctor/'

const onlyIn = (/** @type {string} */ library, /** @type {string} */ where) => ({
  name: `${library}-only-in-one-place`,
  comment: `only ${where} may import ${library}`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^${where}` },
  to: { path: `(^|node_modules/)${library}(/|$)` },
})

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: 'no-unknown-layer',
      comment: 'every file in src belongs to a layer; a new folder needs its place in this list',
      severity: 'error',
      from: { path: '^src/', pathNot: pathOf(names) },
      to: {},
    },
    {
      name: 'no-import-of-unknown-layer',
      comment: 'every file in src belongs to a layer; a new folder needs its place in this list',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: pathOf(names) },
    },
    {
      name: 'service-uses-the-public-api',
      comment:
        'the service sees of the library what users see: src/index.ts, and how text is cleaned; for the doctor, see below',
      severity: 'error',
      from: { path: pathOf(['service']), pathNot: DOCTOR },
      to: { path: '^src/', pathNot: `${pathOf(['service'])}|^src/(index|text)\\.ts$` },
    },
    {
      name: 'doctor-looks-below-the-queues',
      comment:
        'the doctor examines keys, scripts and servers, which the public API hides, and how stored data of reliable queues are read; no part that makes timers',
      severity: 'error',
      from: { path: DOCTOR },
      to: {
        path: '^src/',
        pathNot: `${pathOf(['service', 'base', 'foundations', 'lua', 'connection'])}|^src/index\\.ts$|^src/reliable/(config|repeats/repeat-definition)\\.ts$`,
      },
    },
    {
      name: 'no-circular',
      comment: 'a cycle has no order to read it in',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-unresolvable',
      comment: 'what cannot be found cannot be checked',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'pure-timing-and-transfer-task',
      comment: 'timers and the transfer task are tested with a fake clock and no server: no ioredis, key names or Lua',
      severity: 'error',
      from: { path: '^src/(timing/|transfer/transfer-task\\.ts$)' },
      to: { path: '(^|node_modules/)ioredis(/|$)|^src/(keys\\.ts$|lua/)' },
    },
    onlyIn('msgpackr', 'src/codec/msgpack\\.ts$'),
    onlyIn('ioredis', 'src/(connection|testing)/'),
    onlyIn('cac', 'src/service/'),
    onlyIn('yaml', 'src/redisson/'),
    onlyIn('croner', 'src/reliable/repeats/'),
    onlyIn('prom-client', 'src/observability/'),
    onlyIn('@opentelemetry/api', 'src/observability/'),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
