-- Removes the completed records of messages that are now dead letters or gone: a record of an earlier message of the same
-- id would be taken for theirs. A key of another type prevents no other step.
local function forgetCompleted(completed, completedAt, ids)
  if not ids or #ids == 0 then return end
  redis.pcall('HDEL', completed, unpack(ids))
  redis.pcall('ZREM', completedAt, unpack(ids))
end

-- Adds the id of a message that has ended to a list, if there is one. No message has a longer id, also no dead letter with a suffix, and
-- each copy of a very long one takes time.
local function noteEnded(ids, id)
  if ids and #id <= 576 then ids[#ids + 1] = id end
end

-- Publishes the names of what has ended for waiting calls, a line for each. The channel's name is that of the
-- key of the messages with another part. Without the right to publish the script goes on: waiting calls ask again with each sweep.
local function publishLines(messages, part, names)
  local lines, ESCAPES = {}, {['\\'] = '\\\\', ['\n'] = '\\n'}
  for n, name in ipairs(names) do lines[n] = string.gsub(name, '[\\\n]', ESCAPES) end
  redis.pcall('PUBLISH', string.gsub(messages, ':messages:', part, 1), table.concat(lines, '\n'))
end

-- Publishes the ids of ended messages.
local function publishEnds(messages, ids)
  if not ids or #ids == 0 then return end
  publishLines(messages, ':ends:', ids)
end
