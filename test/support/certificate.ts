import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Writes a key and a certificate for 127.0.0.1 that signs itself: `<name>.key` and `<name>.pem`. */
export function writeCertificate(dir: string, name: string): void {
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${name}`]
  const files = ['-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.pem`)]
  execFileSync('openssl', [...request, '-addext', 'subjectAltName=IP:127.0.0.1', ...files], { stdio: 'pipe' })
}
