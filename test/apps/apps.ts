/** Real apps, from their own packages: how each is installed and started, and what it shows of a user who signed in. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** What an app is started with. */
export interface Setup {
  /** Where it is installed, and an empty folder for its data. */
  readonly installed: string
  readonly folder: string
  /** Where its users find it, and where it listens. */
  readonly url: string
  readonly port: number
  /** The lines that `lychgate client add --for` says to set. */
  readonly settings: readonly string[]
}

export interface Program {
  readonly command: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Commands that come first. */
  readonly before?: readonly (readonly string[])[]
}

export interface App {
  /** Its recipe. */
  readonly recipe: string
  /** As `tried` of its recipe says. */
  readonly version: string
  readonly python?: readonly string[]
  readonly npm?: readonly string[]
  readonly go?: string
  start(setup: Setup): Program
  /** Begins the sign-in; the pages of this server follow. */
  open(page: Page, url: string): Promise<unknown>
  /** Waits until the app shows who is signed in. */
  shows(page: Page, url: string): Promise<unknown>
}

const user = 'ada'
const email = 'ada@example.com'
/** A cookie secret of an app: 32 characters. */
const secret = 'a-cookie-secret-of-a-test-only-1'

function write(folder: string, name: string, lines: readonly string[]): string {
  const file = join(folder, name)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}

const environmentOf = (settings: readonly string[]) =>
  Object.fromEntries(settings.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]))

const streamlit: App = {
  recipe: 'streamlit',
  version: '1.67.0',
  python: ['streamlit[auth]==1.67.0'],
  start({ installed, folder, port, settings }) {
    const own = settings.map((line) => line.replace('32-RANDOM-CHARACTERS', secret))
    write(folder, '.streamlit/secrets.toml', own)
    const app = write(folder, 'app.py', [
      'import streamlit as st',
      'if st.user.is_logged_in:',
      '    st.write("Signed in as " + st.user.email)',
      'else:',
      '    st.button("Sign in", on_click=st.login)',
    ])
    const flags = ['--server.headless', 'true', '--browser.gatherUsageStats', 'false']
    return { command: [`${installed}/bin/streamlit`, 'run', app, '--server.port', `${port}`, ...flags] }
  },
  async open(page, url) {
    await page.goto(url)
    await page.getByRole('button', { name: 'Sign in' }).click()
  },
  shows: (page) => page.getByText(`Signed in as ${email}`).waitFor(),
}

const jupyterhub: App = {
  recipe: 'jupyterhub',
  version: '6.1.1 with oauthenticator 17.4.0',
  python: ['jupyterhub==6.1.1', 'oauthenticator==17.4.0'],
  npm: ['configurable-http-proxy@5.3.0'],
  start({ installed, folder, port, settings }) {
    const file = write(folder, 'jupyterhub_config.py', [
      'c = get_config()',
      ...settings,
      `c.JupyterHub.bind_url = 'http://127.0.0.1:${port}'`,
      `c.JupyterHub.hub_port = ${port + 1}`,
      `c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:${port + 2}'`,
      `c.ConfigurableHTTPProxy.command = ['${installed}/node_modules/.bin/configurable-http-proxy']`,
      "c.JupyterHub.spawner_class = 'simple'",
      "c.JupyterHub.default_url = '/hub/home'",
      'c.Authenticator.allow_all = True',
    ])
    return { command: [`${installed}/bin/jupyterhub`, '--config', file] }
  },
  async open(page, url) {
    await page.goto(`${url}/hub/login`)
    await page.locator('a[href*="oauth_login"]').click()
  },
  shows: (page) => page.locator('nav').getByText(user).first().waitFor(),
}

const djangoAllauth: App = {
  recipe: 'django-allauth',
  version: '65.22.1',
  python: ['django==5.2.19', 'django-allauth[socialaccount]==65.22.1'],
  start({ installed, folder, port, settings }) {
    const file = write(folder, 'site.py', [
      'import sys',
      'from django.conf import settings',
      'from django.core.management import execute_from_command_line',
      'from django.http import HttpResponse',
      'from django.urls import include, path',
      ...settings,
      'settings.configure(DEBUG=True, SECRET_KEY="a test", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["localhost"],',
      '  SITE_ID=1, LOGIN_REDIRECT_URL="/", SOCIALACCOUNT_LOGIN_ON_GET=True, ACCOUNT_EMAIL_VERIFICATION="none",',
      '  USE_X_FORWARDED_HOST=True, SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"),',
      '  SOCIALACCOUNT_PROVIDERS=SOCIALACCOUNT_PROVIDERS, USE_TZ=True,',
      `  DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "${folder}/db.sqlite3"}},`,
      '  AUTHENTICATION_BACKENDS=["allauth.account.auth_backends.AuthenticationBackend"],',
      '  INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",',
      '    "django.contrib.messages", "django.contrib.sites", "allauth", "allauth.account", "allauth.socialaccount",',
      '    "allauth.socialaccount.providers.openid_connect"],',
      '  MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",',
      '    "django.contrib.auth.middleware.AuthenticationMiddleware",',
      '    "django.contrib.messages.middleware.MessageMiddleware", "allauth.account.middleware.AccountMiddleware"],',
      '  TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS":',
      '    {"context_processors": ["django.template.context_processors.request"]}}])',
      'import django',
      'django.setup()',
      'urlpatterns = [path("accounts/", include("allauth.urls")),',
      '  path("", lambda request: HttpResponse("Signed in as " + getattr(request.user, "email", "")))]',
      'execute_from_command_line(sys.argv)',
    ])
    const python = `${installed}/bin/python`
    return {
      before: [[python, file, 'migrate']],
      command: [python, file, 'runserver', `127.0.0.1:${port}`, '--noreload'],
    }
  },
  open: (page, url) => page.goto(`${url}/accounts/oidc/lychgate/login/`),
  shows: (page) => page.getByText(`Signed in as ${email}`).waitFor(),
}

const nodeRed: App = {
  recipe: 'node-red',
  version: '4.1.15 with passport-openidconnect 0.1.2',
  npm: ['node-red@4.1.15', 'passport-openidconnect@0.1.2'],
  start({ installed, folder, port, settings }) {
    const [strategy = '', ...options] = settings.map((line) => `${line},`)
    const file = write(folder, 'settings.js', [
      'module.exports = { adminAuth: { type: "strategy",',
      `  users: [{ username: "${user}", permissions: ["*"] }],`,
      '  strategy: { name: "openidconnect", label: "Sign in", icon: "fa-user",',
      strategy.replace('require("', `require("${installed}/node_modules/`),
      '    options: {',
      ...options,
      '      verify: (issuer, profile, done) => done(null, profile) } } } }',
    ])
    const program = `${installed}/node_modules/node-red/red.js`
    return {
      command: [process.execPath, program, '--userDir', folder, '--settings', file, '--port', `${port}`],
    }
  },
  open: (page, url) => page.goto(`${url}/auth/strategy`),
  shows: async (page) => {
    await page.locator('#red-ui-header-button-user').click()
    await page.getByText(user, { exact: true }).first().waitFor()
  },
}

const pgadmin: App = {
  recipe: 'pgadmin',
  version: '9.18',
  python: ['pgadmin4==9.18'],
  start({ installed, folder, port, settings }) {
    const python = `${installed}/bin/python`
    const file = write(folder, 'start.py', [
      'import os, runpy, sys',
      'import importlib.util',
      'package = list(importlib.util.find_spec("pgadmin4").submodule_search_locations)[0]',
      'sys.path.insert(0, package)',
      'own = [',
      ...settings.map((line) => `  ${JSON.stringify(line)},`),
      `  "DATA_DIR = ${JSON.stringify(folder).replaceAll('"', "'")}",`,
      '  "SQLITE_PATH = DATA_DIR + \'/pgadmin4.db\'", "SESSION_DB_PATH = DATA_DIR + \'/sessions\'",',
      '  "STORAGE_DIR = DATA_DIR + \'/storage\'", "LOG_FILE = DATA_DIR + \'/log\'", "SERVER_MODE = True",',
      `  "DEFAULT_SERVER_PORT = ${port}", "MASTER_PASSWORD_REQUIRED = False", "UPGRADE_CHECK_ENABLED = False"]`,
      'open(os.path.join(package, "config_local.py"), "w").write("\\n".join(own) + "\\n")',
      'sys.argv = [sys.argv[1], *sys.argv[2:]]',
      'runpy.run_path(os.path.join(package, sys.argv[0]), run_name="__main__")',
    ])
    const environment = { PGADMIN_SETUP_EMAIL: 'root@example.com', PGADMIN_SETUP_PASSWORD: secret }
    return {
      environment,
      before: [[python, file, 'setup.py', 'setup-db']],
      command: [python, file, 'pgAdmin4.py'],
    }
  },
  async open(page, url) {
    await page.goto(`${url}/login`)
    await page.getByRole('button', { name: 'Lychgate' }).click()
  },
  shows: async (page, url) => {
    await page.waitForURL(`${url}/browser/`)
    // Its page takes minutes on a busy machine, and begins with this script about the user.
    const script = await (await page.request.get(`${url}/browser/js/utils.js`)).text()
    if (!script.includes(email)) throw new Error('its script does not name the user')
  },
}

const oauth2Proxy: App = {
  recipe: 'oauth2-proxy',
  version: '7.15.6',
  go: 'github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6',
  start({ installed, port, settings }) {
    const own = {
      OAUTH2_PROXY_HTTP_ADDRESS: `127.0.0.1:${port}`,
      OAUTH2_PROXY_COOKIE_SECRET: secret,
      OAUTH2_PROXY_UPSTREAMS: 'static://200',
      OAUTH2_PROXY_REVERSE_PROXY: 'true',
    }
    return {
      command: [`${installed}/bin/oauth2-proxy`],
      environment: { ...environmentOf(settings), ...own },
    }
  },
  open: (page, url) => page.goto(`${url}/oauth2/start?rd=%2Foauth2%2Fuserinfo`),
  shows: (page) => page.getByText(email).waitFor(),
}

export const apps: readonly App[] = [streamlit, jupyterhub, djangoAllauth, nodeRed, pgadmin, oauth2Proxy]
