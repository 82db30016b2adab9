import { render } from 'preact'
import { followTheme } from './lib/preferences.js'
import { listenForNavigation } from './lib/router.js'
import { App } from './shell/app.js'

followTheme()
listenForNavigation()
const page = document.getElementById('page')
if (page !== null) render(<App />, page)
