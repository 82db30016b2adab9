-- Removes the completed records of messages that are now dead letters or gone: a record of an earlier message of the same
-- id would be taken for theirs. A key of another type prevents no other step.
local function forgetCompleted(completed, completedAt, ids)
  if not ids or #ids == 0 then return end
  redis.pcall('HDEL', completed, unpack(ids))
  redis.pcall('ZREM', completedAt, unpack(ids))
end

-- Publishes the names of what has ended for waiting calls, a line for each. The channel's name is that of the
-- key of the messages with another part. Without the right to publish the script goes on: waiting calls ask again with each sweep.
local ESCAPES = {['\\'] = '\\\\', ['\n'] = '\\n'}
local function publishLines(messages, part, names)
  local lines = {}
  for n, name in ipairs(names) do lines[n] = string.gsub(name, '[\\\n]', ESCAPES) end
  redis.pcall('PUBLISH', string.gsub(messages, ':messages:', part, 1), table.concat(lines, '\n'))
end

-- Publishes the ids of ended messages.
local function publishEnds(messages, ids)
  if not ids or #ids == 0 then return end
  publishLines(messages, ':ends:', ids)
end
