// Runs the statements of a file through mysql2 in both protocols and prints columns and values: client.mjs HOST PORT DATABASE FILE
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
const mysql = createRequire(process.cwd() + '/')('mysql2/promise')

const [host, port, database, path] = process.argv.slice(2)
const connection = await mysql.createConnection({ host, port: Number(port), user: 'root', database, supportBigNumbers: true, bigNumberStrings: true, dateStrings: true })
await connection.query("SET time_zone = '+01:00'")
const show = (rows) => rows.forEach((row) => console.log('  row', JSON.stringify(row)))
for (const statement of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
  for (const method of ['query', 'execute']) {
    console.log(method, statement)
    try {
      const [rows, fields] = await connection[method](statement)
      fields?.forEach((f) => console.log('  column', f.name, f.columnType))
      show(rows)
    } catch (error) {
      console.log('  error', error.errno, error.sqlState, error.message)
    }
  }
}
const [rows] = await connection.execute('SELECT ? AS a, ? AS b, ? AS c, ? IS NULL AS d', [1, 'x', Buffer.from([0, 65]), null])
show(rows)
const [limited] = await connection.execute('SELECT id FROM every ORDER BY id LIMIT ? OFFSET ?', ['1', '1'])
show(limited)
await connection.end()
