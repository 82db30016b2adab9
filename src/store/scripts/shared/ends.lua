-- Messages that are dead letters now or are gone, where the queue keeps completed messages: what is kept of an earlier message of the same
-- id is not what became of this one. A key of another type prevents nothing.
local function forgetCompleted(completed, completedAt, ids)
  if not ids or #ids == 0 then return end
  redis.pcall('HDEL', completed, unpack(ids))
  redis.pcall('ZREM', completedAt, unpack(ids))
end

-- Publishes what has ended, for those who wait for the end of one: a line for each. The channel has the name of the
-- key of the messages with another part. Without the right to publish nothing else changes: who waits looks again with each sweep.
local ESCAPES = {['\\'] = '\\\\', ['\n'] = '\\n'}
local function publishLines(messages, part, names)
  local lines = {}
  for n, name in ipairs(names) do lines[n] = string.gsub(name, '[\\\n]', ESCAPES) end
  redis.pcall('PUBLISH', string.gsub(messages, ':messages:', part, 1), table.concat(lines, '\n'))
end

-- The same of the ids of messages that have ended.
local function publishEnds(messages, ids)
  if not ids or #ids == 0 then return end
  publishLines(messages, ':ends:', ids)
end
