local byte = string.byte

-- The unsigned 64-bit little endian number at `at`; nil if it is too large to be a length, or the bytes are missing.
local function length(entry, at)
  local a, b, c, d, e, f, g, h = byte(entry, at, at + 7)
  if not h or e + f + g + h > 0 then return nil end
  return a + b * 256 + c * 65536 + d * 16777216
end

-- Where the payload of an entry starts, and whether the entry is in the order list; nil for an unreadable entry.
local function layout(entry)
  local size = #entry
  local idLength, _, _, _, _, _, a, b, c, d, e, f, g, h, i, j, k = byte(entry, 1, 17)
  -- nearly all, in one comparison: an id of five bytes, of eight, or of ten
  if idLength == 5 and h and a + b * 256 + c * 65536 + d * 16777216 == size - 14 and e + f + g + h == 0 then
    return 15, false
  end
  if idLength == 8 and k and d + e * 256 + f * 65536 + g * 16777216 == size - 17 and h + i + j + k == 0 then
    return 18, true
  end
  if idLength == 10 and k and f + g * 256 + h * 65536 + i * 16777216 == size - 19 and j + k == 0 then
    local l, m = byte(entry, 18, 19)
    if m and l + m == 0 then return 20, false end
  end
  -- with an id of 7 bytes the length would be where the old format has it, so that is always the old format
  local isNew = idLength and idLength ~= 7 and length(entry, idLength + 2) == size - idLength - 9
  -- Where both fit and the id is longer than ten bytes, it is the old format: its payload can be made to look like the end of a
  -- header, whereas such an id has the old format's length by chance only.
  if isNew and idLength > 10 and length(entry, 9) == size - 16 then isNew = false end
  -- 8 as Redisson writes them; twice as many where the ticket must not be guessed
  if isNew then return idLength + 10, idLength == 8 or idLength == 16 end
  if length(entry, 9) == size - 16 then return 17, true end
  return nil
end
