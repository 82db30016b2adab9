import type { FastifyInstance } from 'fastify'

/** The methods of each path, for the answer to a request with another method. */
export class Paths {
  readonly #methods = new Map<string, { readonly form: RegExp; readonly methods: Set<string> }>()

  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method }) => {
      const form = new RegExp(
        `^${url
          .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
          .replace(/:[^/]+/g, '[^/]+')
          .replace('*', '.*')}$`,
      )
      const known = this.#methods.get(url) ?? { form, methods: new Set() }
      this.#methods.set(url, known)
      for (const each of [method].flat()) known.methods.add(each)
    })
  }

  /** The methods of a URL's path; empty if no route has the path. */
  methodsOf(url: string): string[] {
    const [path = ''] = url.split('?', 1)
    const found = [...this.#methods.values()].filter(({ form }) => form.test(path))
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort()
  }
}
