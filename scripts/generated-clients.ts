import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Step {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** It brings what the others need; these ask no registry. Where it fails, the registry is away: that says nothing of the client. */
  readonly isFetch?: boolean
}

/** A program with a client that a generator makes from the description of the service. */
export interface GeneratedClient {
  readonly name: string
  /** Its own part, in docs/examples/clients/generated. */
  readonly file: string
  /** Without this command the language is not there. */
  readonly needs: readonly string[]
  /** Lays the program in an empty folder, which has `openapi.json`; the last step is the program itself. */
  readonly steps: (dir: string, source: string) => readonly Step[]
}

const PYTHON = ['openapi-python-client==0.29.1', 'ruff']
const GO = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2'
const JAVA = '7.14.0'
const BUILD = ['-q', 'compile', 'dependency:copy-dependencies']
/** Else lists that were not set are sent as empty ones. */
const NULLS = ['--additional-properties', 'containerDefaultToNull=true']

export const generatedClients: readonly GeneratedClient[] = [
  {
    name: 'generated-python',
    file: 'client.py',
    needs: ['python3', '--version'],
    steps(dir, source) {
      const [bin, env] = [join(dir, 'venv/bin'), { PATH: `${join(dir, 'venv/bin')}:${process.env['PATH'] ?? ''}` }]
      const generate = ['generate', '--path', 'openapi.json', '--meta', 'none', '--output-path', 'delay_service']
      return [
        { command: 'python3', args: ['-m', 'venv', 'venv'] },
        {
          command: join(bin, 'pip'),
          args: ['install', '--quiet', '--disable-pip-version-check', ...PYTHON],
          isFetch: true,
        },
        { command: join(bin, 'openapi-python-client'), args: generate, env },
        { command: join(bin, 'python'), args: [source], env: { PYTHONPATH: dir } },
      ]
    },
  },
  {
    name: 'generated-go',
    file: 'client.go',
    needs: ['go', 'version'],
    steps(dir, source) {
      const env = { CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOBIN: join(dir, 'bin') }
      mkdirSync(join(dir, 'api'))
      writeFileSync(join(dir, 'go.mod'), 'module clients\n\ngo 1.24\n')
      copyFileSync(source, join(dir, 'main.go'))
      const generate = ['-generate', 'types,client', '-package', 'api', '-o', 'api/api.go', 'openapi.json']
      return [
        { command: 'go', args: ['install', GO], env, isFetch: true },
        { command: join(dir, 'bin/oapi-codegen'), args: generate },
        // what the generated code imports, also if it does not compile
        { command: 'go', args: ['mod', 'tidy'], env, isFetch: true },
        { command: 'go', args: ['run', '.'], env: { ...env, GOPROXY: 'off' } },
      ]
    },
  },
  {
    name: 'generated-java',
    file: 'Client.java',
    needs: ['mvn', '--version'],
    steps(dir, source) {
      mkdirSync(join(dir, 'src/main/java'), { recursive: true })
      copyFileSync(source, join(dir, 'src/main/java/Client.java'))
      const jar = `-Dartifact=org.openapitools:openapi-generator-cli:${JAVA}`
      const generator = ['-jar', `openapi-generator-cli-${JAVA}.jar`, 'generate', '-i', 'openapi.json', '-o', '.']
      return [
        { command: 'mvn', args: ['-q', 'dependency:copy', jar, '-DoutputDirectory=.'], isFetch: true },
        { command: 'java', args: [...generator, '-g', 'java', '--library', 'native', ...NULLS] },
        // with the plugins and libraries of the same goals, which compile nothing here
        { command: 'mvn', args: [...BUILD, '-Dmaven.main.skip=true'], isFetch: true },
        { command: 'mvn', args: ['-o', ...BUILD] },
        { command: 'java', args: ['-cp', 'target/classes:target/dependency/*', 'Client'] },
      ]
    },
  },
]
