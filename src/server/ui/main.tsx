import { render } from 'preact'
import { askForOverview } from './api/overview-stream.js'
import { askForSession } from './api/session.js'
import { followTheme, opensOverview } from './lib/preferences.js'
import { isAtOverview, listenForNavigation } from './lib/router.js'
import { App } from './shell/app.js'

// one after the other, and each after a frame, they would take three times as long
askForSession()
if (opensOverview.get() === 'yes' && isAtOverview()) askForOverview()
followTheme()
listenForNavigation()
const page = document.getElementById('page')
if (page !== null) render(<App />, page)
