/** What a module exports by name. Of what was built, which is CommonJS, the namespace has more. */
export function exportsOf<T extends object>(namespace: T): T {
  const names = Object.entries(namespace).filter(
    ([name]) => !['default', 'module.exports', '__esModule'].includes(name),
  )
  return Object.fromEntries(names) as T
}
