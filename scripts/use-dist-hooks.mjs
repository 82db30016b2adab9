// A module hook that leads imports of src to dist. All of them, so that internals that tests import are the same module
// instances that the package's entry uses. Plain JavaScript, as use-dist.mjs says.
const SRC = new URL('../src/', import.meta.url).href
const SERVER = `${SRC}server/`
const DIST = new URL('../dist/', import.meta.url).href

/** @type {import('node:module').ResolveHook} */
export async function resolve(specifier, context, nextResolve) {
  const resolved = await nextResolve(specifier, context)
  if (!resolved.url.startsWith(SRC) || resolved.url.startsWith(SERVER)) return resolved
  const url = DIST + resolved.url.slice(SRC.length).replace(/\.(c?)ts(?=$|\?)/, '.$1js')
  return { ...resolved, url, format: 'commonjs' }
}
