// The pages of the site: those of the repository, with links that lead from page to page, or to the repository.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { root } from '../ensure-installed.mjs'
import { repository } from '../packed-links.js'

export interface SidebarItem {
  readonly text: string
  readonly link?: string
  readonly collapsed?: boolean
  readonly items?: SidebarItem[]
}

/** The first page of the site. */
const HOME = 'README.md'
const FOLDERS = ['.', 'docs', 'docs/decisions', 'docs/examples', 'benchmarks']
const LINK = /(\]\()([^)\s]+)(\))/g
const IMAGE = /\.(png|svg)$/

/** Writes the pages, and the pictures that they show, into a folder. */
export function writePages(into: string): void {
  const pages = sources()
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
    const target = join(into, page === HOME ? 'index.md' : page)
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(
      target,
      withoutMarkup(
        text.replaceAll(
          LINK,
          (_, open: string, link: string, close: string) => `${open}${leading(page, link, pages)}${close}`,
        ),
      ),
    )
  }
  for (const pictures of ['docs/images', 'benchmarks/results/plots'])
    cpSync(join(root, pictures), join(into, pictures), { recursive: true })
}

/** The list under "More" in README.md: its headings, and the pages that it links. */
export function sidebar(): SidebarItem[] {
  const [, more = ''] = readFileSync(join(root, HOME), 'utf8').split('\n## More\n')
  const groups: SidebarItem[] = [{ text: 'Home', link: '/' }]
  const listed = new Set<string>()
  let items: SidebarItem[] = []
  for (const line of more.split('\n')) {
    const [, heading] = /^\*\*(.+)\*\*$/.exec(line) ?? []
    if (heading !== undefined) groups.push({ text: heading, items: (items = []) })
    for (const [, , link = ''] of line.matchAll(LINK)) {
      const [page = ''] = inRepository(link).split('#')
      if (!page.endsWith('.md') || listed.has(page)) continue
      listed.add(page)
      items.push({ text: titleOf(page), link: `/${page.replace(/\.md$/, '')}` })
    }
  }
  const missing = sources().filter((page) => /^docs\/[^/]+$/.test(page) && !listed.has(page))
  if (missing.length > 0) throw new Error(`README.md, "More", does not link ${missing.join(', ')}`)
  return groups
}

function sources(): string[] {
  return FOLDERS.flatMap((folder) => filesIn(folder, /\.md$/)).sort()
}

function filesIn(folder: string, names: RegExp): string[] {
  return readdirSync(join(root, folder))
    .filter((name) => names.test(name))
    .map((name) => posix.join(folder, name))
}

/** Where a link of a page leads on the site. */
function leading(page: string, link: string, pages: readonly string[]): string {
  const own = inRepository(link)
  if (/^(https?:|mailto:|#)/.test(own)) return link
  const [path = '', anchor] = own.split('#')
  const target = own === link ? posix.join(posix.dirname(page), path) : path
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (target === HOME) return `/${hash}`
  if (pages.includes(target) || (IMAGE.test(target) && existsSync(join(root, target)))) return `/${target}${hash}`
  if (pages.includes(`${target.replace(/\/$/, '')}/README.md`)) return `/${target.replace(/\/$/, '')}/README.md${hash}`
  if (!existsSync(join(root, target))) throw new Error(`${page}: no such file: ${link}`)
  const kind = statSync(join(root, target)).isDirectory() ? 'tree' : 'blob'
  return `${repository()}/${kind}/main/${target}${hash}`
}

/** An address of the repository as the path of its file; any other link as it is. */
function inRepository(link: string): string {
  const [, path] = /^https:\/\/github\.com\/[\w.-]+\/redelayed\/(?:blob|raw)\/main\/(.*)$/.exec(link) ?? []
  return path ?? link
}

/** VitePress reads what looks like a tag or an expression of Vue. */
function withoutMarkup(text: string): string {
  return text
    .split(/(^```[^]*?^```$|`[^`\n]+`)/m)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part
            .replaceAll('{{', '&#123;&#123;')
            .replaceAll(/<(?!!--|\/?(?:br|sup|sub|details|summary|kbd|a|img|p|b)\b)/g, '&lt;'),
    )
    .join('')
}

function titleOf(page: string): string {
  const [, title = page] = /^# (.+)$/m.exec(readFileSync(join(root, page), 'utf8')) ?? []
  return title
}
