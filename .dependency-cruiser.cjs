// The layer check: in src a folder is a layer, and a layer imports from itself and from those before it, never back.
// It guards what makes the library testable: timers that know nothing of Redis, one file that knows key names, one
// folder that knows Lua. `npm run lint` runs it; test/unit/layers.test.ts shows that it can fail.

/** In order; a layer is the list of paths that belong to it. */
const layers = {
  base: [
    'src/(text|clean-error|errors|events|process-warnings|instrumentation|options|optional|duration)\\.ts$',
    'src/require\\.cts$',
  ],
  keys: ['src/keys\\.ts$'],
  codecs: ['src/codecs/'],
  timing: ['src/timing/'],
  store: ['src/store/'],
  redis: ['src/redis/'],
  scheduler: ['src/scheduler/'],
  queues: ['src/queues/'],
  reliable: ['src/reliable/'],
  sharding: ['src/sharding/'],
  workers: ['src/workers/'],
  client: ['src/client\\.ts$'],
  index: ['src/index\\.ts$'],
  java: ['src/java/'],
  observability: ['src/observability/'],
  testing: ['src/testing/'],
  doctor: ['src/doctor/'],
  cli: ['src/cli/'],
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

const DOCTOR = '^src/doctor/'

const onlyIn = (/** @type {string} */ library, /** @type {string} */ where) => ({
  name: `${library}-only-in-one-place`,
  comment: `only ${where} may import ${library}`,
  severity: 'error',
  from: { path: '^src/', pathNot: `^(${where}|src/require\\.cts$)` }, // there each is loaded for its one place
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
      name: 'only-the-store-knows-scripts',
      comment: 'a script is sent by a method of a store: no other file names a script, its keys or its constants',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/store/' },
      to: {
        path: '^src/store/(run|script|scripts|reliable-scripts|reliable-change-scripts|reliable-group-scripts)\\.ts$|^src/store/scripts/',
        dependencyTypesNot: ['type-only'], // what a script answers may be named
      },
    },
    {
      name: 'connections-know-no-store',
      comment: 'connections send commands for the stores and never call one: what they need comes from above',
      severity: 'error',
      from: { path: pathOf(['redis']) },
      to: { path: '-store\\.ts$|durable-scripts\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'cli-uses-the-public-api',
      comment:
        'the command line sees of the library what users see: src/index.ts, src/java/index.ts, how texts and durations are written, and the doctor',
      severity: 'error',
      from: { path: pathOf(['cli']) },
      to: { path: '^src/', pathNot: `${pathOf(['cli', 'doctor'])}|^src/(index|java/index|text|duration)\\.ts$` },
    },
    {
      name: 'doctor-looks-below-the-queues',
      comment:
        'the doctor examines keys, scripts and servers, which the public API hides, how stored data of reliable queues are read and their ticks computed, and how shards are named; no part that makes timers',
      severity: 'error',
      from: { path: pathOf(['doctor']) },
      to: {
        path: '^src/',
        pathNot: `${pathOf(['doctor', 'base', 'keys', 'codecs', 'timing', 'store', 'redis'])}|^src/index\\.ts$|^src/reliable/(config|record|failures|visibility|repeats/(repeat-definition|ticks))\\.ts$|^src/sharding/(shard-names|id-places|shard-of-key)\\.ts$`,
      },
    },
    {
      name: 'java-is-an-entry-of-its-own',
      comment:
        'what Java needs is loaded by `redelayed/java` and by the command line only, so that all other programs start without it',
      severity: 'error',
      from: { path: '^src/', pathNot: pathOf(['java', 'cli']) },
      to: { path: pathOf(['java']) },
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
      name: 'pure-timing-and-due-scheduler',
      comment:
        'timers and the due scheduler are tested with a fake clock and no server: no ioredis, key names or scripts',
      severity: 'error',
      from: { path: '^src/(timing/|scheduler/due-(machine|scheduler)\\.ts$)' },
      to: { path: '(^|node_modules/)ioredis(/|$)|^src/(keys\\.ts$|store/)' },
    },
    onlyIn('msgpackr', 'src/codecs/msgpack\\.ts$'),
    onlyIn('ioredis', 'src/(redis|testing)/'),
    onlyIn('cac', 'src/cli/'),
    onlyIn('yaml', 'src/java/redisson-yaml/'),
    onlyIn('croner', 'src/reliable/repeats/'),
    onlyIn('prom-client', 'src/observability/'),
    onlyIn('@opentelemetry/api', 'src/observability/'),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // a package of its own, with layers of its own
    exclude: { path: '^src/server/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
