import { toError } from '../../errors.js'

/** How long a node may take to answer before the next one is asked as well. */
export const SLOW_MS = 1_000

/**
 * Asks one node after the other, the next one when a node fails or is slow, and resolves with the first answer. Rejects with the last error
 * if none answers, or if there is no node.
 */
export function firstAnswer<Node, T>(nodes: readonly Node[], ask: (node: Node) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let next = 0
    let open = 0
    let timer: NodeJS.Timeout | undefined
    const goOn = (error: Error): void => {
      clearTimeout(timer)
      const node = nodes[next++]
      if (node === undefined) {
        if (open === 0) reject(error)
        return
      }
      open++
      timer = setTimeout(goOn, SLOW_MS, new Error(`no answer within ${SLOW_MS / 1_000} s`)).unref() // the pending requests keep the process alive
      ask(node).then(
        (answer) => {
          clearTimeout(timer)
          next = nodes.length
          resolve(answer)
        },
        (thrown: unknown) => {
          open--
          goOn(toError(thrown))
        },
      )
    }
    goOn(new Error('there is no node to ask'))
  })
}
