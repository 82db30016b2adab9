-- What is stored for a setting, if it is a whole number in its range: any client can write there. `text` may also be nothing, or the
-- error of a key of another type. One of more digits than any of them has is not read: millions of them take seconds.
local function setting(text, least, most)
  local number = type(text) == 'string' and #text <= 16 and string.match(text, '^%d+$') and tonumber(text)
  if number and number >= least and number <= (most or 9007199254740991) then return number end
end

-- Some settings by their names as far as they are stored, or the error of a key of another type. A text that is longer than any setting
-- (16 bytes; 100 for the changes, with their epoch) is not read: each script would copy a stranger's 100 MB. Most queues have few settings, so
-- those come first that most of these have, and after the last that is stored no other is looked for.
local function stored(config, ...)
  local fields, found = redis.pcall('HLEN', config), {}
  if type(fields) == 'table' then return fields end
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
