/** The named exports of a module. The namespace of the build, which is CommonJS, has more. */
export function exportsOf<T extends object>(namespace: T): T {
  const names = Object.entries(namespace).filter(
    ([name]) => !['default', 'module.exports', '__esModule'].includes(name),
  )
  return Object.fromEntries(names) as T
}
