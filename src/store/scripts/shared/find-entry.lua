-- The pending entry with this due time whose bytes begin with `prefix`, or nil. Entries of one due time are in the
-- schedule in the order of their bytes, so it is found by halving: O(log N).
local function findEntry(timeouts, due, prefix)
  -- Below zero when the entry sorts before the prefix. Bytes, because Lua compares strings by the server's locale.
  local function compare(entry)
    for i = 1, #prefix do
      local difference = (string.byte(entry, i) or -1) - string.byte(prefix, i)
      if difference ~= 0 then return difference end
    end
    return 0
  end

  local low = redis.call('ZCOUNT', timeouts, '-inf', '(' .. due)
  local high = low + redis.call('ZCOUNT', timeouts, due, due)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('ZRANGE', timeouts, middle, middle)[1]
    local difference = compare(entry)
    if difference == 0 then return entry end
    if difference < 0 then low = middle + 1 else high = middle end
  end
  return nil
end
