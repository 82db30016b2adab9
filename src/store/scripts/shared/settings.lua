-- The value of a setting, if it is a whole number in its range, because any client can write there. `text` may also be nothing. A text with
-- too many digits is not read: millions of them take seconds.
local function setting(text, least, most)
  local number = type(text) == 'string' and #text <= 16 and string.match(text, '^%d+$') and tonumber(text)
  if number and number >= least and number <= (most or 9007199254740991) then return number end
end

-- The stored settings of these names. Fails if the key is of another type: with defaults in place of the settings a paused queue would
-- hand out messages, and changes would be missing from the change stream. Runs before any write, or after another step has read the key.
-- A text that is longer than any setting (16 bytes; 100 for the changes, with their epoch) is not read: each script would copy another
-- program's 100 MB. Most queues have few settings, so the most common ones come first, and the search ends when all stored ones are
-- found.
local function stored(config, ...)
  local fields, found = redis.call('HLEN', config), {}
  if fields == 0 then return found end
  for _, name in ipairs({...}) do
    local size = redis.call('HSTRLEN', config, name)
    if size > 0 then
      if size <= (name == 'changes' and 100 or 16) then found[name] = redis.call('HGET', config, name) end
      fields = fields - 1
      if fields == 0 then break end
    end
  end
  return found
end
