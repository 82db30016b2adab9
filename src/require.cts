/**
 * Synchronous loading of modules, which only CommonJS has. Each is written out, so that bundlers find it, and is in a `try` of its own, so
 * that they go on without it. This file is CommonJS also where the others run as ES modules, without a build.
 */
type Loaded = { readonly is: unknown } | { readonly cause: unknown }

const libraries = {
  '@opentelemetry/api': (): Loaded => {
    try {
      return { is: require('@opentelemetry/api') }
    } catch (cause) {
      return { cause }
    }
  },
  croner: (): Loaded => {
    try {
      return { is: require('croner') }
    } catch (cause) {
      return { cause }
    }
  },
  'prom-client': (): Loaded => {
    try {
      return { is: require('prom-client') }
    } catch (cause) {
      return { cause }
    }
  },
  yaml: (): Loaded => {
    try {
      return { is: require('yaml') }
    } catch (cause) {
      return { cause }
    }
  },
}

export = libraries
