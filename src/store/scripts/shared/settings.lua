-- What is stored for a setting, if it is a whole number in its range: any client can write there. `text` may also be nothing, or the
-- error of a key of another type. One of more digits than any of them has is not read: millions of them take seconds.
local function setting(text, least, most)
  local number = type(text) == 'string' and #text <= 16 and string.match(text, '^%d+$') and tonumber(text)
  if number and number >= least and number <= (most or 9007199254740991) then return number end
end
