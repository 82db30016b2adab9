import { expect } from 'chai'
import { setTimeout as pause } from 'node:timers/promises'
import { Doctor } from '../console/doctor.js'

const finding = (level: string, queue: string, more: object = {}): object => ({
  ...{
    level,
    queue,
    code: `code-${level}`,
    found: `Found in ${queue}.`,
    means: 'It means this.',
    repair: 'Repair it.',
  },
  ...more,
})

/** The timer that ends the freshness of a report was set earlier, for the same time, so it comes first. */
const staleReport = (): Promise<void> => pause(0)

/** A doctor whose command prints these documents, one after the other, and the options that it was given. */
function doctorOf(...documents: object[]) {
  const asked: (readonly string[])[] = []
  let ms = 1_000_000
  const run = async (command: string, options: readonly string[] = []): Promise<unknown> => {
    asked.push([command, ...options])
    return documents[asked.length - 1]
  }
  const doctor = new Doctor({ run }, () => ms, { monotonic: () => ms, freshMs: 0 })
  return { doctor, asked, pass: (more: number) => (ms += more) }
}

describe('the doctor of the page', () => {
  it('shows the worst first, a thousand at most, and says what it has left out and not examined', async () => {
    const findings = [
      ...Array.from({ length: 700 }, (_, at) => finding('info', `i${at}`)),
      ...Array.from({ length: 600 }, (_, at) => finding('warning', `w${at}`)),
      finding('error', 'e'),
    ]
    const { doctor, asked } = doctorOf({ findings, notExamined: 12 })
    const report = await doctor.examine()
    expect(asked).to.deep.equal([['doctor', '--within', '30s']])
    expect(report.findings.map(({ queue }) => queue).slice(0, 3)).to.deep.equal(['e', 'w0', 'w1'])
    expect(report.findings).to.have.length(1_000)
    expect([report.leftOut, report.notExamined]).to.deep.equal([301, 12])
    expect(report.findings[0]).to.deep.equal({
      ...{ severity: 'error', code: 'code-error', queue: 'e', found: 'Found in e.', means: 'It means this.' },
      ...{ message: 'Found in e. It means this.', advice: 'Repair it.' },
    })
  })

  it('cuts texts and names of a million letters, and takes what is no text for none', async () => {
    const long = 'w'.repeat(1_000_000)
    const odd = { level: 'info', code: 7, queue: null, found: {}, means: 1, repair: [] }
    const { doctor } = doctorOf({ findings: [finding('error', long, { found: long, repair: long }), odd] })
    const { findings, notExamined } = await doctor.examine()
    expect(JSON.stringify(findings).length).to.be.below(10_000)
    expect(findings[0]?.queue).to.match(/^w+…$/)
    expect(findings[1]).to.include({ code: '', queue: null, found: '', means: '', advice: null })
    expect(notExamined).to.equal(0)
  })

  it('examines nothing again while a report is not older than asked for', async () => {
    const { doctor, asked, pass } = doctorOf({ findings: [] }, { findings: [] }, { findings: [] })
    const first = await doctor.examine(60_000)
    await staleReport()
    pass(60_000)
    expect(await doctor.examine(60_000)).to.equal(first)
    pass(1)
    const second = await doctor.examine(60_000)
    expect([second === first, asked.length]).to.deep.equal([false, 2])
    await staleReport()
    expect(await doctor.examine(0), 'at the same moment').to.equal(second)
    pass(1)
    await doctor.examine()
    expect(asked).to.have.length(3)
  })

  it('runs once for all who ask at the same time', async () => {
    const { doctor, asked } = doctorOf({ findings: [] })
    const [one, other] = await Promise.all([doctor.examine(), doctor.examine()])
    expect([one === other, asked.length]).to.deep.equal([true, 1])
  })
})
