import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Writes a key and a certificate for 127.0.0.1, which the `authority` of another call signs, or else itself: `<name>.key` and `<name>.pem`. */
export function writeCertificate(dir: string, name: string, authority?: string): void {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const request = ['req', '-x509', ...key, '-days', '2', '-subj', `/CN=${name}`]
  const files = ['-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.pem`)]
  if (authority !== undefined) files.push('-CA', join(dir, `${authority}.pem`), '-CAkey', join(dir, `${authority}.key`))
  execFileSync('openssl', [...request, '-addext', 'subjectAltName=IP:127.0.0.1', ...files], { stdio: 'pipe' })
}
