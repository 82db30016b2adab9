// The layers of the service: foundations, records, config, database, journal, topics, delivery, what the page asks, API, service, client, command line. A layer imports from itself and from those before it, and of the
// library only its public entry points.
const layers = {
  foundations: ['^src/server/(errors|pause|run-script)\\.ts$'],
  records: ['^src/server/records/'],
  config: ['^src/server/config/'],
  database: ['^src/server/database/'],
  journal: ['^src/server/journal/'],
  topics: ['^src/server/topics/'],
  delivery: ['^src/server/delivery/'],
  console: ['^src/server/console/'],
  api: ['^src/server/api/'],
  service: ['^src/server/service/'],
  index: ['^src/server/index\\.ts$'],
  client: ['^src/server/client/'],
  cli: ['^src/server/cli/'],
  ui: ['^src/server/ui/'],
}
const names = Object.keys(layers)
const pathOf = (/** @type {string[]} */ some) => some.flatMap((name) => layers[name]).join('|')
const SOURCES = '^src/server/(?!test/|demo/|dist/|node_modules/)'

module.exports = {
  forbidden: [
    ...names.slice(0, -1).map((name, index) => ({
      name: `layer-${name}`,
      comment: `${name} may import only from itself and from ${names.slice(0, index).join(', ') || 'nothing else'}`,
      severity: 'error',
      from: { path: pathOf([name]) },
      to: { path: SOURCES, pathNot: pathOf(names.slice(0, index + 1)) },
    })),
    {
      name: 'no-unknown-layer',
      comment: 'a new folder needs its place in this list',
      severity: 'error',
      from: { path: SOURCES, pathNot: pathOf(names) },
      to: {},
    },
    {
      name: 'the-library-by-its-door',
      comment: 'the service uses the library as its users do: by the name of the package',
      severity: 'error',
      from: { path: SOURCES },
      to: { path: '^src/(?!server/)', pathNot: '^src/index\\.ts$' },
    },
    {
      name: 'the-page-is-apart',
      comment:
        'the page runs in browsers: of the service it imports types only, and what it is made of comes into no other part',
      severity: 'error',
      from: { path: '^src/server/ui/' },
      to: { path: '^src/', pathNot: '^src/server/ui/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'the-page-alone-has-its-parts',
      comment: 'preact and uplot are in the bundle of the page, and not installed with the service',
      severity: 'error',
      from: { path: SOURCES, pathNot: '^src/server/ui/' },
      to: { path: '(^|node_modules/)(preact|uplot)(/|$)' },
    },
    {
      name: 'drivers-in-one-place',
      comment: 'only the database layer knows SQL drivers',
      severity: 'error',
      from: { path: SOURCES, pathNot: '^src/server/database/' },
      to: { path: '(^|node_modules/)(pg|mysql2|libsql)(/|$)' },
    },
    {
      name: 'no-circular',
      comment: 'a cycle has no order to read it in',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^src/server/(test|demo|dist)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
