// `npm run build:ui`: src/server/ui -> src/server/dist/ui, as the service serves it.
import { ensureInstalled, root } from './ensure-installed.mjs'
import { buildUi } from './page-bundle.js'

ensureInstalled(root, { workspaces: true })
console.log(await buildUi())
