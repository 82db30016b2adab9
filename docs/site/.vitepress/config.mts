// The pages are those of scripts/docs-site.ts, which copies them here and writes site.json beside them.
import { readFileSync } from 'node:fs'
import { defineConfig, type DefaultTheme } from 'vitepress'

interface Site {
  readonly base: string
  readonly repository: string
  readonly sidebar: DefaultTheme.SidebarItem[]
}

const dir = process.env.REDELAYED_SITE ?? ''
const site = JSON.parse(readFileSync(`${dir}/site.json`, 'utf8')) as Site

export default defineConfig({
  title: 'redelayed',
  description:
    'Messages at their time, on Redis, for Node.js: the queues of Redisson, workers, and a service over HTTP',
  base: site.base,
  srcDir: `${dir}/pages`,
  outDir: `${dir}/html`,
  cacheDir: `${dir}/cache`,
  vite: { publicDir: `${dir}/public`, build: { chunkSizeWarningLimit: 2_000 } },
  cleanUrls: false,
  // as GitHub names the parts of a page
  markdown: {
    anchor: {
      slugify: (heading) =>
        heading
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '')
          .trim()
          .replaceAll(/\s/g, '-'),
    },
  },
  // the API reference is TypeDoc's
  ignoreDeadLinks: [/^\/api\//],
  themeConfig: {
    nav: [
      { text: 'Tour', link: '/docs/tour' },
      { text: 'Reliable queues', link: '/docs/reliable-queue' },
      { text: 'Service', link: '/docs/service' },
      { text: 'HTTP API', link: '/openapi' },
      { text: 'API of the library', link: '/api/index.html', target: '_self' },
    ],
    sidebar: site.sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: site.repository }],
  },
})
