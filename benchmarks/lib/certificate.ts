/** A certificate of this machine's loopback address for one run, made by openssl. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificate {
  readonly certificateFile: string
  readonly keyFile: string
  /** It is its own authority. PEM. */
  readonly ca: string
}

export function makeCertificate(dir: string): Certificate {
  const [certificateFile, keyFile] = [join(dir, 'certificate.pem'), join(dir, 'key.pem')]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
  const files = ['-keyout', keyFile, '-out', certificateFile]
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const { status, stderr, error } = spawnSync('openssl', [...args, ...subject, ...files], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl made no certificate: ${error?.message ?? stderr}`)
  return { certificateFile, keyFile, ca: readFileSync(certificateFile, 'utf8') }
}
