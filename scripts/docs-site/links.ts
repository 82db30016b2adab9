// What VitePress does not check: that the part of a page is there to which a link leads.
import { readFileSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'

/**
 * @param dir the built site
 * @returns what is wrong
 */
export function brokenLinks(dir: string, base: string): string[] {
  const pages = new Map<string, { ids: Set<string>; links: string[] }>()
  for (const file of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const page = file.replaceAll('\\', '/')
    if (!page.endsWith('.html') || page.startsWith('api/')) continue // TypeDoc has checked its own
    const html = readFileSync(`${dir}/${page}`, 'utf8')
    const all = (attribute: RegExp) => Array.from(html.matchAll(attribute), ([, value = '']) => decoded(value))
    pages.set(page, { ids: new Set(all(/ id="([^"]+)"/g)), links: all(/ href="([^"]+)"/g) })
  }
  const problems = new Set<string>()
  for (const [page, { links }] of pages) {
    for (const link of links) {
      if (/^([a-z]+:|\/\/)/.test(link)) continue
      const [path = '', id] = link.split('#')
      if (id === undefined || id === '') continue
      const target =
        path === '' ? page : path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(page), path)
      const found = pages.get(target === '' || target.endsWith('/') ? `${target}index.html` : target)
      if (found !== undefined && !found.ids.has(id)) problems.add(`${page}: ${link} leads to no part of the page`)
    }
  }
  return [...problems]
}

function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"'))
}
